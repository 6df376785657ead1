"""The operator's commands. `cli/commands_parser.py` lists them; the other modules implement them."""
