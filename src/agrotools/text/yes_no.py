"""Words for yes and no, in the languages in which people write tables and answers.

They are whole values of a cell or of an item that asks for yes or no, in lower case. ``verdadeiro``, ``faux`` and the
like are what spreadsheets write for true and false in these languages.
"""

YES = (
    *("yes", "y", "true"),
    *("sim", "verdadeiro", "sí", "si", "sì", "verdadero", "vero", "oui", "vrai"),
    *("ja", "wahr", "waar", "tak", "prawda", "да", "истина", "evet", "doğru"),
    *("是", "是的", "对", "はい", "예", "네", "có", "ya", "हाँ", "हां", "نعم"),
)
NO = (
    *("no", "n", "false"),
    *("não", "nao", "falso", "non", "faux"),
    *("nein", "falsch", "nee", "onwaar", "nie", "fałsz", "нет", "ложь", "hayır", "yanlış"),
    *("否", "不是", "不对", "いいえ", "아니요", "아니오", "không", "tidak", "नहीं", "لا"),
)
YES_INITIALS = ("s", "j")
"""First letters of ``sim`` and ``ja``, only where yes or no is asked for: in a column of labels they may be names."""
