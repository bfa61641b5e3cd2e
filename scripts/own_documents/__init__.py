"""The parts that `scripts/make_documents.py` writes the project's own documents from.

names: invented people, companies, places.  figures: amounts and dates as documents print them.
draft: a document under construction and its txt, html, md and docx forms.  clauses: boilerplate
that contracts share.  contracts, deeds, announcements, judgments: the kinds of document.
"""
