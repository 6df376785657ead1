"""The operator's commands: `commands/parser.py` says which there are, the other modules what they do."""
