"""The operator's commands: `cli/commands_parser.py` says which there are, the other modules what they do."""
