"""Faces: what other programs and libraries meet, each a thin module over pipeline and templates."""
