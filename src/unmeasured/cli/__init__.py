"""The command line: ``commands`` has the main commands, the other modules register their own with it.

Takes files and options; everything is a call of the library that a script could make as well. A user's mistake is one
sentence on standard error and exit code 2.
"""
