"""Methods for click logs compared on human judgements of web-like queries."""

from diptych.benchmark.web.fused_runs import FusedRuns
from diptych.benchmark.web.judged_lists import JudgedLists, caption_lists, crowd_lists, expert_lists
from diptych.benchmark.web.running import run_web
from diptych.benchmark.web.simulated_clicks import simulate_clicks
from diptych.benchmark.web.web_data import FEATURES, WebData, flickr8k_web
from diptych.benchmark.web.web_methods import WebMethod, web_methods
from diptych.benchmark.web.web_report import WebReport
from diptych.benchmark.web.web_run import WebRun, measure_run
from diptych.benchmark.web.word_lists import word_lists

__all__ = [
    "FEATURES",
    "FusedRuns",
    "JudgedLists",
    "WebData",
    "WebMethod",
    "WebReport",
    "WebRun",
    "caption_lists",
    "crowd_lists",
    "expert_lists",
    "flickr8k_web",
    "measure_run",
    "run_web",
    "simulate_clicks",
    "web_methods",
    "word_lists",
]
