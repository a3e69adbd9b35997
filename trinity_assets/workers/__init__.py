"""Workers: asking language models questions, and never asking the same question twice.

Belongs here, by concept:

- declaring: workers and providers (``specs``), what a run may cost and what is done by the clock (``operations``,
  ``cron``), what is asked (``requests``);
- one call: ``client``, ``endpoints``, ``litellm_library``, the model served in this process (``embedded``,
  ``prefixes``), what a response or an error means (``outcomes``, ``provider_errors``, ``error_classes``,
  ``redaction``), what it costs (``prices``);
- when a call may be made: again after a failure (``retrying``), and by all processes together (``permits``,
  ``permit_queue``, ``pace``, ``scopes``, ``budgets``);
- the database: ``ledger``, ``ledger_database``, ``ledger_tables``, ``migrations``, ``writer``, its numbers and files
  (``ledger_reports``, ``ledger_files``), who asks what at this moment (``claims``, ``claiming``, ``claimants``);
- one cell: collecting it (``collection``, ``asking``, ``tables``), tasks that always time out (``timeouts``), asking it
  again (``epochs``), watching its worker (``sentinels``), what it will take (``history``, ``planning``,
  ``durations``, ``plan_report``), what really went out for it (``sent``).

Does not belong here: what a task is or how its prompt is rendered (``benchmarks/``), whether an answer is right
(``grading/``), and Dagster.
"""
