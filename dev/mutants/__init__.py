"""Single mistakes, planted one by one in a copy of the tree: a test must catch each."""
