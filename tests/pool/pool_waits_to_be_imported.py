"""A module that is imported when the file named by POOL_MAY_IMPORT is there, and not before."""

import os
import time
from pathlib import Path

while not Path(os.environ["POOL_MAY_IMPORT"]).exists():
    time.sleep(0.005)
