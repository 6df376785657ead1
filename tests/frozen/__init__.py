"""What users and programs see of Latchkey, kept in text files that a change of the code's rooms must leave alone."""
