"""The stemmer that readers of answers share."""

from concurrent.futures import ThreadPoolExecutor

from agrotools.text.normalise import stemmer

WORDS = ("measuring", "diseases", "counted", "leaves", "calculation", "plants") * 500


def test_threads_do_not_mix_their_words():
    alone = [stemmer().stemWord(word) for word in WORDS]
    with ThreadPoolExecutor(8) as threads:
        for stems in threads.map(lambda _: [stemmer().stemWord(word) for word in WORDS], range(8)):
            assert stems == alone
