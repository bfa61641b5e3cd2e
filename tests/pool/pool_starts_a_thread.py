"""A module that makes forking unsafe by being imported."""

import threading

THREAD = threading.Thread(target=threading.Event().wait, daemon=True)
THREAD.start()
