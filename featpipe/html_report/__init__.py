"""One self-contained HTML file with the extracted values and their places in the documents.

The page loads nothing, opens from a file, and is in Chinese and English. Every document is treated
as hostile: texts are embedded as JSON that cannot contain markup, and are shown as text.
"""

from featpipe.html_report.page import service_page
from featpipe.html_report.report import ReportSettings, ReportSize, write_report

__all__ = ["ReportSettings", "ReportSize", "service_page", "write_report"]
