"""Reads results of `ablate` pipelines from Python.

    import ablate

    lab = ablate.open("papers/p0_imdb_lstm", profile="cpu")
    lab["results"].pandas()                      # a stage's table; several instances with their axes as columns
    lab["attacked", {"seed": 1}].polars()        # one instance
    lab["attacked[seed=1].examples"].arrow()
    lab.sql("SELECT kind, SUM(cpu_seconds) FROM ablate_executions GROUP BY kind").pandas()
    lab.weights("lstm[seed=1]")                  # {name: NumPy array}
    lab.claims(), lab.runs()

Everything is asked of the program `ablate`, which verifies digests whenever it reads. It runs nothing and writes
nothing. Tables need pyarrow; `.pandas()` and `.polars()` need those, `weights` needs NumPy.

Models and attacks of your own import a module of the same name, which `ablate` puts beside their program.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sysconfig
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

__all__ = ["AblateError", "Lab", "Result", "open"]

Reference = Union[str, Tuple[str, Mapping[str, Any]]]


def __getattr__(name: str) -> Any:
    if name in ("serve", "attack", "OutOfQueries", "Item"):
        raise AttributeError(
            f"ablate.{name} is for programs that `ablate run` starts: name this file in `run` and `files` of a stage "
            "(external-model, or attack = \"external\"), which puts a module with it beside the program"
        )
    if name == "__version__":
        import importlib.metadata

        try:
            return importlib.metadata.version("ablate")
        except importlib.metadata.PackageNotFoundError:
            raise AttributeError("ablate is read from a folder, not installed: it has no version of its own") from None
    raise AttributeError(f"module 'ablate' has no attribute {name!r}")


class AblateError(Exception):
    """What `ablate` said when it could not answer."""


class Result:
    """A table of the store, as the library that you use wants it."""

    def __init__(self, name: str, parquet: bytes):
        self.name = name
        self._parquet = parquet

    def arrow(self) -> Any:
        """As a pyarrow.Table, with the metadata of the store."""
        import pyarrow.parquet

        return pyarrow.parquet.read_table(io.BytesIO(self._parquet))

    def pandas(self) -> Any:
        """As a pandas.DataFrame."""
        return self.arrow().to_pandas()

    def polars(self) -> Any:
        """As a polars.DataFrame."""
        import polars

        return polars.from_arrow(self.arrow())

    def rows(self) -> List[Dict[str, Any]]:
        """As a list of dicts."""
        return self.arrow().to_pylist()

    def __repr__(self) -> str:
        return f"<ablate result {self.name!r}: .arrow(), .pandas(), .polars() or .rows()>"


class Lab:
    """A pipeline with its store. `open` makes one."""

    def __init__(
        self,
        folder: Union[str, "os.PathLike[str]"] = ".",
        *,
        file: str = "pipeline.toml",
        profile: Optional[str] = None,
        settings: Sequence[str] = (),
        store: Optional[Union[str, "os.PathLike[str]"]] = None,
        run: Optional[Union[int, str]] = None,
        program: Optional[str] = None,
    ):
        self._program = program or _program()
        options = ["-C", os.fspath(folder), "--file", file]
        if store is not None:
            # The program changes folders before it looks for the store.
            options += ["--store", os.path.abspath(os.fspath(store))]
        self._options = options
        # A past run says for itself what it was made with.
        self._overlay = [] if profile is None else ["--profile", profile]
        for setting in settings:
            self._overlay += ["--set", setting]
        self._run = [] if run is None else ["--run", str(run)]

    def __getitem__(self, reference: Reference) -> Result:
        """The table of `stage`, `stage.output` or `stage[axis=value].output`, or of a stage and its axes.

        Of several instances it is one table, with their axes as columns; of an ablation the base, unless the reference
        names a variant.
        """
        name = _name(reference)
        printed = self._ask("export", name, "--parquet", *self._overlay, *self._run)
        return Result(name, printed)

    # Without these Python would try lab[0], lab[1], …
    __iter__ = None
    __contains__ = None

    def __repr__(self) -> str:
        return f"<ablate pipeline {self._options[1]!r}: lab['stage'], .stages(), .runs(), .claims(), .sql(query)>"

    def sql(self, query: str, all_runs: bool = False) -> Result:
        """The answer to a query over stages and over the record of all runs, `ablate_runs` and others.

        With `all_runs` stages have the rows of all runs, and a first column `run`.
        """
        which = ["--all-runs"] if all_runs else self._run
        printed = self._ask("sql", "--parquet", *self._overlay, *which, "--", query)
        return Result("sql", printed)

    def stages(self) -> List[Dict[str, Any]]:
        """Every output of every stage instance: rows, bytes and digest, or None where it has not been run."""
        return self._lines("ls", *self._overlay)

    def runs(self) -> List[Dict[str, Any]]:
        """All runs of this pipeline, the newest first."""
        return self._lines("runs")

    def claims(self) -> List[Dict[str, Any]]:
        """The claims with their verdicts, our numbers and the paper's."""
        return self._lines("claims", *self._overlay, *self._run)

    def provenance(self, table: str) -> Result:
        """A table of the record: runs, executions, uses, inputs, outputs or tags."""
        return self.sql(f"SELECT * FROM ablate_{table}")

    def weights(self, reference: Reference) -> Dict[str, Any]:
        """The weights of a trained model as NumPy arrays, by name."""
        table = self[reference].arrow()
        if not {"name", "shape", "values"} <= set(table.column_names):
            raise AblateError(f"{_name(reference)} has no weights: its columns are {', '.join(table.column_names)}")
        found: Dict[str, Any] = {}
        columns = (table.column(name).combine_chunks() for name in ("name", "shape", "values"))
        for name, shape, values in zip(*columns):
            if not hasattr(values, "values"):
                raise AblateError(f"{_name(reference)} is a model in a program of its own: its weights are bytes of files")
            if name.as_py() in found:
                raise AblateError(f"{_name(reference)} has several instances: name one, as in 'lstm[seed=1]'")
            found[name.as_py()] = values.values.to_numpy(zero_copy_only=False).reshape(shape.as_py())
        return found

    def _lines(self, *arguments: str) -> List[Dict[str, Any]]:
        printed = self._ask(*arguments, "--json")
        return [json.loads(line) for line in printed.splitlines() if line.strip()]

    def _ask(self, *arguments: str) -> bytes:
        command = [self._program, *self._options, *arguments]
        answer = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
        if answer.returncode != 0:
            said = answer.stderr.decode(errors="replace").strip()
            raise AblateError(said or f"{' '.join(command)} ended with {answer.returncode}")
        return answer.stdout


def open(folder: Union[str, "os.PathLike[str]"] = ".", **options: Any) -> Lab:  # noqa: A001
    """The pipeline in a folder; `profile`, `settings`, `store`, `run`, `file` and `program` as on the command line."""
    return Lab(folder, **options)


def _name(reference: Reference) -> str:
    if isinstance(reference, str):
        return reference
    try:
        stage, axes = reference
        axes = dict(axes)
    except (TypeError, ValueError):
        raise TypeError(f"lab['stage'] or lab['stage', {{'axis': value}}], not lab[{reference!r}]") from None
    stage, dot, output = stage.partition(".")
    # As a pipeline file writes them.
    as_written = {True: "true", False: "false"}
    point = ",".join(
        f"{axis}={as_written[value] if isinstance(value, bool) else value}" for axis, value in axes.items()
    )
    return f"{stage}[{point}]{dot}{output}" if point else f"{stage}{dot}{output}"


def _program() -> str:
    """The program of this installation, or the one on the path."""
    beside = os.path.join(sysconfig.get_path("scripts"), "ablate")
    found = os.environ.get("ABLATE_PROGRAM") or (beside if os.path.exists(beside) else shutil.which("ablate"))
    if not found:
        raise AblateError("the program `ablate` is not installed: put it on the path, or set ABLATE_PROGRAM")
    return found
