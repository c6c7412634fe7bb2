"""Words so common in a language that they say little about what is searched for.

They are dropped from a query while other words remain, so "the who" still searches. Only function words are listed:
a name or a thing is never one.
"""

from __future__ import annotations

from collections.abc import Sequence

_ENGLISH = """
a about above after again against all am an and any are as at be because been before being below between both but by
can could did do does doing down during each few for from further had has have having he her here hers herself him
himself his how i if in into is it its itself just me more most my myself no nor not now of off on once only or other
our ours ourselves out over own same she should so some such than that the their theirs them themselves then there
these they this those through to too under until up very was we were what when where which while who whom why will
with would you your yours yourself yourselves
"""
_GERMAN = """
aber als am an auch auf aus bei bin bis bist da dadurch damit dann das dass dem den der des dessen die dies diese
diesem diesen dieser dieses doch dort du durch ein eine einem einen einer eines er es für hat hatte hatten hier hinter
ich ihr ihre im in ist ja jede jedem jeden jeder jedes jener kann können mein mit nach nicht nur ob oder ohne sehr sein
seine sich sie sind so soll über um und uns unser unter vom von vor war waren warum was weil wenn wer werde werden wie
wieder wir wird wo zu zum zur
"""
_FRENCH = """
à alors au aucun aussi autre aux avec ce ces cet cette comme comment dans de des donc du elle elles en est et été être
eux fait il ils je la le les leur leurs lui ma mais me même mes mon ne nos notre nous on ont ou où par pas plus pour
pourquoi qu quand que quel quelle qui sa sans se ses si son sont sur ta te tes toi ton tous tout très tu un une vos
votre vous
"""
_SPANISH = """
a al algo como con cual cuando de del desde donde durante e el ella ellas ellos en entre era eran es esa ese eso esta
está están este esto ha hay la las le les lo los más me mi mis mucho muy nada ni no nos nosotros o os otra otro para
pero poco por porque que qué quien se ser si sí sin sobre son su sus también tan te tiene todo tu tus un una uno unos
y ya yo
"""

LANGUAGES: dict[str, frozenset[str]] = {
    "english": frozenset(_ENGLISH.split()),
    "german": frozenset(_GERMAN.split()),
    "french": frozenset(_FRENCH.split()),
    "spanish": frozenset(_SPANISH.split()),
}


def stop_words(setting: str | Sequence[str]) -> frozenset[str]:
    """The stop words that a setting names: a language, `none`, or a list of words."""
    if isinstance(setting, str):
        return LANGUAGES.get(setting, frozenset())
    return frozenset(word.casefold() for word in setting)
