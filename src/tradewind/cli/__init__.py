"""The command line: `tradewind`.

    app.py        the commands, and from any error to a sentence and an exit code
    commands/     one file per group of commands: arguments, options, help
    config.py     the run file: TOML -> settings
    answers.py    a study -> plain data (--json); tables.py draws the same data for people

Everything that `tradewind --help` does not need is imported inside the commands.
"""
