"""scikit-learn is imported when it is needed, by whichever thread needs it first."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import threading
import time
from diptych.estimators import scikit_learn

module = "sklearn.feature_extraction.text"

def import_it():
    scikit_learn(module)

threading.Thread(target=import_it).start()
while module not in sys.modules:
    time.sleep(0)
scikit_learn(module).CountVectorizer()
"""


def test_a_module_that_another_thread_is_importing_is_whole_when_it_comes() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
