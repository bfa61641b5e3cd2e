"""The evidence page: one self-contained HTML file that shows what was extracted, and from where.

It loads nothing from anywhere, opens from a file, speaks Chinese and English, and treats every
document as hostile: texts travel as JSON in which no markup can end, and reach the page as text.
"""

from featpipe.html_report.page import service_page
from featpipe.html_report.report import ReportSettings, ReportSize, write_report

__all__ = ["ReportSettings", "ReportSize", "service_page", "write_report"]
