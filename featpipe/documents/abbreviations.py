"""Latin abbreviations whose full stop is no end of a sentence, and words that begin one."""

from __future__ import annotations


def words_in(text: str) -> frozenset[str]:
    """The words of a text that is easier to read than a list of quoted strings."""
    return frozenset(text.split())


#: A full stop after these ends no sentence.
NEVER_LAST = words_in(
    """
    mr mrs ms dr rs nrs nr prof rev hon messrs no nos art arts sec secs fig figs vol vols ch pp p
    para paras cf vs v e.g i.e viz approx est ref ext tel st ste mt ft dept univ gen col capt lt
    sgt gov sen rep pres jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat
    sun al
    """
)

#: A full stop after these ends a sentence only when a word follows that begins one.
SELDOM_LAST = words_in(
    """
    inc co corp ltd llc plc l.l.c l.p n.v s.a b.v bros jr sr esq etc ave blvd rd bldg u.s u.k
    u.s.a u.n e.u d.c a.m p.m ph.d m.d b.a m.a ed eds rev'd assn int'l nat'l
    """
)

#: Words that, with a capital, begin a sentence rather than continue a name.
STARTERS = words_in(
    """
    The This That These Those It Its He She We They I You If In On At As An A And But Or For To
    From By With When Where Which While Such Each Any All No Not Nothing Neither Both However Upon
    Under After Before During Except Subject Unless Until Notwithstanding Company Licensee Our
    """
)
