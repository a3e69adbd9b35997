"""Running untrusted Python.

Belongs here: starting a program that somebody else wrote, its limits, and telling how it ended. Does not belong here:
what the program is or whether it is right (``grading/``).
"""
