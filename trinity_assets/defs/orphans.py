"""A step whose run was killed must not go on spending."""

import multiprocessing
import os
import threading


def end_with_run() -> None:
    """From now on, end this step's process at once when the process that executes its run is gone.

    Without this a killed run would leave its steps asking, unseen, beside the run that is started in its place. Answers
    are committed one by one, so ending between two of them loses only the calls in flight. A step that runs inside the
    run's own process needs no watch.
    """
    run_process = multiprocessing.parent_process()
    if run_process is None:
        return

    def watch() -> None:
        run_process.join()
        os._exit(1)

    threading.Thread(target=watch, name="end-with-run", daemon=True).start()
