#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""optuna_search.py URL WORKER KNOB... [--trials N]: where several knobs of a worker depend on one another, Optuna
searches all of them at once, by the service's HTTP. URL is what the service printed, with its token. The worker ends
with the best that was found, or as it was, if nothing was better."""
import argparse
import json
import time
import urllib.request

import optuna

LEAST_USES = 40


class Worker:
    def __init__(self, url, pid, objective):
        self.url, _, self.token = url.partition("/#")
        self.pid, self.objective = pid, objective

    def ask(self, method, path, body=None):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode() if body is not None else None, method=method,
                                         headers={"Authorization": "Bearer " + self.token})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
            return json.load(answer)

    def site(self, name):
        return self.ask("GET", f"/sites/{self.pid}:{name}")

    def set(self, values):
        for name, value in values.items():
            self.ask("PUT", f"/sites/{self.pid}:{name}/knob", {"value": value})

    def cost(self):
        """Nanoseconds of a use of the objective, from now on."""
        self.ask("PUT", f"/sites/{self.pid}:{self.objective}/reset", {})
        since = time.monotonic_ns()
        while True:
            site = self.site(self.objective)
            candidate = site["rows"][0]["candidates"][0]
            if site["seen_ns"] > since and candidate["uses"] >= LEAST_USES:
                return candidate["ns"]
            time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("worker", type=int)
    parser.add_argument("knobs", nargs="+")
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--objective", default="round")
    options = parser.parse_args()
    worker = Worker(options.url, options.worker, options.objective)
    knobs = {name: worker.site(name) for name in options.knobs}
    start = {name: int(knob["value"]) for name, knob in knobs.items()}
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1))
    study.enqueue_trial(start)

    def objective(trial):
        worker.set({name: trial.suggest_int(name, max(int(knob["low"]), 1), int(knob["high"]), log=True)
                    for name, knob in knobs.items()})
        return worker.cost()

    try:
        study.optimize(objective, n_trials=options.trials)
    finally:  # also where a request failed or somebody interrupts it
        ended = [trial for trial in study.trials if trial.state == optuna.trial.TrialState.COMPLETE]
        worker.set(study.best_params if ended else start)
    print(json.dumps({"best": study.best_params, "ns": study.best_value, "before_ns": study.trials[0].value}))


if __name__ == "__main__":
    main()
