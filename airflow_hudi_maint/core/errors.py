"""One tree of errors.

Each error is also a fitting builtin, and is either terminal (trying again cannot help) or transient (it may)::

    HudiMaintError
    ├── TerminalError
    │   ├── TableNotFoundError (FileNotFoundError)      no hoodie.properties at the base path
    │   ├── DirectoryNotFoundError (FileNotFoundError)  no directory of plain files at the path given
    │   ├── DocumentNotFoundError (FileNotFoundError)   no statistics, plan or report at the path given
    │   ├── UnsupportedTableError (ValueError)          a table version or type that is not read or maintained
    │   ├── CorruptTableError (ValueError)              a file of the table that cannot be understood
    │   ├── MetadataTableError (ValueError)             a metadata table that is absent, behind, ahead or incomplete
    │   ├── InvalidPolicyError (ValueError)             a TTL policy that is malformed
    │   ├── InvalidSettingError (ValueError)            an option that is unknown, out of range or contradicts another
    │   ├── SchemaConflictError (ValueError)            plain files whose schemas are not merged safely
    │   ├── UnreadableFileError (ValueError)            a plain data file that cannot be understood
    │   ├── UnknownPartitionError (LookupError)         a partition name that the table does not have
    │   ├── UnknownColumnError (LookupError)            a column that the table's schema does not have
    │   ├── UnknownInstantError (LookupError)           an instant that is not on the timeline in the state asked for
    │   ├── PlanOutdatedError (RuntimeError)            the table changed under a plan
    │   ├── GuardTrippedError (RuntimeError)            a limit forbids what the plan wants
    │   ├── VerificationError (RuntimeError)            what a step left on the table is not what it was asked for
    │   ├── UnhealthyTableError (RuntimeError)          a health signal is as bad as the caller does not accept
    │   ├── StorageAccessError (PermissionError)        storage refuses who asks, or nobody was named
    │   ├── BundleError (RuntimeError)                  no usable Hudi bundle for this table, or it does not resolve
    │   └── JavaNotFoundError (FileNotFoundError)       no Java to run Spark with
    └── TransientError
        ├── StorageError (OSError)                      storage failed in the middle of reading or writing
        ├── PendingActionError (RuntimeError)           a live writer or a pending plan is in the way
        ├── EngineError (RuntimeError)                  the Spark job failed; the timeline shows no completion
        └── EngineKilledError (RuntimeError)            the Spark job was killed from outside or timed out

Airflow's glue turns terminal errors into ``AirflowFailException`` and lets transient ones use the task's retries.
"""

from __future__ import annotations


class HudiMaintError(Exception):
    """The root of every error that this package raises on purpose."""


class TerminalError(HudiMaintError):
    """Trying the same again cannot help: an input or the table has to change first."""


class TransientError(HudiMaintError):
    """Trying again later may succeed."""


class TableNotFoundError(TerminalError, FileNotFoundError):
    """There is no Hudi table at the base path."""


class DirectoryNotFoundError(TerminalError, FileNotFoundError):
    """There is no directory of plain files at the path that was given."""


class DocumentNotFoundError(TerminalError, FileNotFoundError):
    """There is no statistics file, plan or report at the path that was given."""


class UnsupportedTableError(TerminalError, ValueError):
    """The table's version, type or layout is not one that this package handles."""


class CorruptTableError(TerminalError, ValueError):
    """A file of the table cannot be understood; the message names it."""


class MetadataTableError(TerminalError, ValueError):
    """The metadata table cannot stand in for the directories; the message says why, and listing those always can."""


class InvalidPolicyError(TerminalError, ValueError):
    """A TTL policy is malformed; the message shows the offending text."""


class InvalidSettingError(TerminalError, ValueError):
    """A setting is unknown, out of range or contradicts another."""


class SchemaConflictError(TerminalError, ValueError):
    """Two plain files have schemas that no safe promotion joins; the message names both, and the field."""


class UnreadableFileError(TerminalError, ValueError):
    """A plain data file is empty, truncated, encrypted or broken; the message names it."""


class UnknownPartitionError(TerminalError, LookupError):
    """The table has no partition of this name."""


class UnknownColumnError(TerminalError, LookupError):
    """The table's schema has no column of this name."""


class UnknownInstantError(TerminalError, LookupError):
    """The timeline has no such instant in the state asked for."""


class PlanOutdatedError(TerminalError, RuntimeError):
    """The table changed since the plan was made, so the plan must not be applied."""


class GuardTrippedError(TerminalError, RuntimeError):
    """A guard forbids what the plan wants; the message has the figures and the setting that would allow it."""


class VerificationError(TerminalError, RuntimeError):
    """A step took effect, and the table is not what it should be; the message says how and what to do."""


class StorageAccessError(TerminalError, PermissionError):
    """The storage refuses access: credentials are wrong or missing, or lack a right."""


class UnhealthyTableError(TerminalError, RuntimeError):
    """A health signal is as bad as the caller does not accept; the message has the signals and what to do."""


class BundleError(TerminalError, RuntimeError):
    """The Hudi bundle does not resolve, or cannot maintain a table of this version."""


class JavaNotFoundError(TerminalError, FileNotFoundError):
    """There is no Java that Spark could run on."""


class StorageError(TransientError, OSError):
    """Storage failed in the middle of an operation; nothing partial was kept."""


class PendingActionError(TransientError, RuntimeError):
    """A pending plan or a live writer is in the way; the message names its instant."""


class EngineError(TransientError, RuntimeError):
    """The Spark job failed and the timeline shows no completion; the message ends with its last log lines."""


class EngineKilledError(TransientError, RuntimeError):
    """The Spark job was killed or ran out of time."""
