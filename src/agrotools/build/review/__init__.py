"""A local web page on which people review the samples of a benchmark; every decision is one line of a journal."""
