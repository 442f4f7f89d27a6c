"""The application: the whole way from a file to a report in a page on one's own machine.

::

    server   requests: who may ask, what they may send, where answers come from      (Starlette)
    jobs     searches in processes of their own, that report and can be stopped
    project  one piece of work: data, columns, knowledge, result, edits; nothing of the web
    exports  what a project gives away as files
    static/  the page: plain modules, no build step

Nothing is computed here: everything is a call of the library that a script could make as well.
"""
