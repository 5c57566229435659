"""The experiment on disk: its folder, its database, and what protects both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol import lazy_names

if TYPE_CHECKING:
    from .annotations import Annotation, Annotations, tags_of
    from .dispatcher_record import QUEUES, DispatcherRecord, RecordRow, SavedState, queue_of_reply
    from .errors import ComputingError, NotWritableError, StoreError
    from .folder import (
        ExperimentFolder,
        clone_checkpoint,
        discard,
        new_experiment_id,
    )
    from .json_lines import JsonConnection, json_line
    from .manager_process import ManagerInfo, has_ended, steady_clock
    from .mirror import Mirror, StorageError, fetch_experiment
    from .paths import (
        FolderError,
        FolderExistsError,
        absolute,
        default_directory,
        is_default,
        problem_of_link,
        shell_word,
        whole_file,
        with_home,
    )
    from .runtime_folder import (
        RuntimeDirectoryError,
        folder_for_sockets,
        private_directory,
        runtime_directory,
    )
    from .store import ExperimentRow, Store
    from .table_rows import StoreTick
else:
    __getattr__ = lazy_names(__name__, __file__)
