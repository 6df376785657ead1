"""What people at a terminal see: help and mistakes, tables, how far long work is."""
