"""Single mistakes that are planted in a copy of the tree, one by one: a test must notice each of them."""
