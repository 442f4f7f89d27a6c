"""The report: one page to send to a co-author, and the files beside it. It reads results and computes nothing."""
