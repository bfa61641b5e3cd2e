"""The guide: pages in English and Chinese, for the terminal and as an offline site."""
