"""Workers: asking language models questions, and never asking the same question twice.

Belongs here: how a worker is declared (``specs``) and what it is asked (``requests``); the one HTTP call (``client``,
``endpoints``, ``litellm_library``), its pace and its retries (``pacing``, ``retrying``), and the model served in this
process (``embedded``); what a response or an error means (``outcomes``, ``provider_errors``, ``redaction``); the
database of calls and answers (``ledger``, ``ledger_database``, ``ledger_tables``, ``migrations``, ``writer``), and who
asks what at this moment (``claims``, ``claiming``), its numbers and files (``ledger_reports``, ``ledger_files``); the
collection of one cell (``asking``, ``collection``, ``tables``), what it will take (``history``, ``planning``,
``durations``, ``plan_report``), and what really went out for it (``sent``). Does not belong here: what a task is or how
its prompt is rendered (``benchmarks/``), whether an answer is right (``grading/``), and Dagster.
"""
