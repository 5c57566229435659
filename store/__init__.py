"""The experiment on disk: its folder, its database, and what protects both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol import lazy_names

if TYPE_CHECKING:
    from .annotations import Annotation, Annotations, tags_of
    from .checkpoint_copies import clone_checkpoint
    from .clock import steady_clock
    from .dispatcher_record import QUEUES, DispatcherRecord, RecordRow, SavedState, queue_of_reply
    from .errors import ComputingError, NotWritableError, StoreError
    from .folder import (
        ExperimentFolder,
        ManagerInfo,
        discard,
        has_ended,
        new_experiment_id,
    )
    from .json_lines import JsonConnection, json_line
    from .mirror import Mirror, fetch_experiment
    from .paths import FolderError, absolute, default_directory, is_default, shell_word, with_home
    from .runtime_folder import (
        RuntimeDirectoryError,
        folder_for_sockets,
        private_directory,
        runtime_directory,
    )
    from .storage import StorageError
    from .store import ExperimentRow, Store, Tick
    from .whole_files import whole_file

_HOMES = {
    ".annotations": "Annotation Annotations tags_of",
    ".checkpoint_copies": "clone_checkpoint",
    ".clock": "steady_clock",
    ".dispatcher_record": "QUEUES DispatcherRecord RecordRow SavedState queue_of_reply",
    ".errors": "ComputingError NotWritableError StoreError",
    ".folder": "ExperimentFolder ManagerInfo discard has_ended new_experiment_id",
    ".json_lines": "JsonConnection json_line",
    ".mirror": "Mirror fetch_experiment",
    ".paths": "FolderError absolute default_directory is_default shell_word with_home",
    ".runtime_folder": "RuntimeDirectoryError folder_for_sockets private_directory runtime_directory",
    ".storage": "StorageError",
    ".store": "ExperimentRow Store Tick",
    ".whole_files": "whole_file",
}

__all__ = [
    "QUEUES",
    "Annotation",
    "Annotations",
    "ComputingError",
    "DispatcherRecord",
    "ExperimentFolder",
    "ExperimentRow",
    "FolderError",
    "JsonConnection",
    "ManagerInfo",
    "Mirror",
    "NotWritableError",
    "RecordRow",
    "RuntimeDirectoryError",
    "SavedState",
    "StorageError",
    "Store",
    "StoreError",
    "Tick",
    "absolute",
    "clone_checkpoint",
    "default_directory",
    "discard",
    "fetch_experiment",
    "folder_for_sockets",
    "has_ended",
    "is_default",
    "json_line",
    "new_experiment_id",
    "private_directory",
    "queue_of_reply",
    "runtime_directory",
    "shell_word",
    "steady_clock",
    "tags_of",
    "whole_file",
    "with_home",
]

if not TYPE_CHECKING:  # a type checker must see which names there are
    __getattr__ = lazy_names(__name__, _HOMES)
