"""The tables of an experiment's database: public (docs/reference/store.md), and changed only by a new step here.

`PRAGMA user_version` counts the steps that a database has seen.
"""

from __future__ import annotations

_FIRST = """
CREATE TABLE experiment (
    id            TEXT PRIMARY KEY,
    name          TEXT,
    status        TEXT NOT NULL,
    reason        TEXT NOT NULL DEFAULT '',
    error         TEXT NOT NULL DEFAULT '',
    config        TEXT NOT NULL,              -- canonical JSON
    token         TEXT NOT NULL,              -- shared secret of manager and agents
    created       REAL NOT NULL,              -- seconds since the epoch, as all times
    end_time      REAL,
    run_time      REAL NOT NULL DEFAULT 0,    -- seconds in which trials could run
    snapshot      TEXT NOT NULL DEFAULT '{}'
);
CREATE TABLE trials (
    sequence_id   INTEGER PRIMARY KEY,
    trial_id      TEXT NOT NULL,              -- unique; no index, which every trial would have to pay for
    status        TEXT NOT NULL,
    parameter_id  TEXT NOT NULL,              -- JSON: a number, a string or null
    record        TEXT NOT NULL,              -- parameter record, JSON; $.parameters holds the parameters
    created       REAL NOT NULL,
    start_time    REAL,
    end_time      REAL,
    final         TEXT,                       -- final result, JSON
    reason        TEXT NOT NULL DEFAULT '',
    kind          TEXT,                       -- kind of failure
    error         TEXT,                       -- last lines of the traceback
    exit_code     INTEGER,                    -- negative: the signal
    attempt       INTEGER NOT NULL,
    slot          INTEGER,                    -- where it runs now
    agent         TEXT,                       -- its last agent
    gpus          TEXT,                       -- JSON list of indices
    pid           INTEGER,
    next_sequence INTEGER NOT NULL,
    finals        INTEGER NOT NULL,
    verdict       TEXT                        -- JSON [cause, reason, kind]: how it will end once it is gone
);
CREATE TABLE metrics (
    sequence_id   INTEGER NOT NULL,
    kind          TEXT NOT NULL,              -- PERIODICAL or FINAL
    sequence      INTEGER NOT NULL,
    attempt       INTEGER NOT NULL,
    value         TEXT NOT NULL,              -- JSON, as reported (NaN and Infinity included)
    time          REAL NOT NULL,
    PRIMARY KEY (sequence_id, kind, sequence, attempt)
) WITHOUT ROWID;
CREATE TABLE objective_values (
    sequence_id   INTEGER NOT NULL,
    name          TEXT NOT NULL,
    value         REAL NOT NULL,
    PRIMARY KEY (sequence_id, name)
) WITHOUT ROWID;
CREATE TABLE commands (                       -- what the dispatcher was sent, in order
    n             INTEGER PRIMARY KEY,
    code          TEXT NOT NULL,
    payload       TEXT NOT NULL
);
CREATE TABLE replies (                        -- what the dispatcher answered, in order
    n             INTEGER PRIMARY KEY,
    code          TEXT NOT NULL,
    payload       TEXT NOT NULL
);
"""

_ATTEMPTS = """
ALTER TABLE trials ADD COLUMN told INTEGER NOT NULL DEFAULT 0;
ALTER TABLE trials ADD COLUMN first_sequence INTEGER NOT NULL DEFAULT 0;
ALTER TABLE trials ADD COLUMN checkpoint TEXT;
ALTER TABLE trials ADD COLUMN checkpoint_sequence INTEGER NOT NULL DEFAULT 0;
ALTER TABLE trials ADD COLUMN copy_of TEXT;
ALTER TABLE trials ADD COLUMN budget REAL;
ALTER TABLE trials ADD COLUMN failed TEXT;
ALTER TABLE trials ADD COLUMN resume TEXT;
ALTER TABLE trials ADD COLUMN revivals INTEGER NOT NULL DEFAULT 0;
ALTER TABLE metrics ADD COLUMN superseded INTEGER NOT NULL DEFAULT 0;
UPDATE trials SET told = next_sequence;
CREATE TABLE attempts (                       -- attempts after which their trial was run again or paused
    sequence_id   INTEGER NOT NULL,           -- of the trial
    attempt       INTEGER NOT NULL,           -- 1, 2, 3 ...
    outcome       TEXT NOT NULL,              -- `retried` or `paused`
    agent         TEXT,                       -- where it ran
    start_time    REAL,                       -- null if it never began
    end_time      REAL NOT NULL,              -- when it ended
    reason        TEXT NOT NULL,              -- why it ended
    kind          TEXT,                       -- kind of failure
    exit_code     INTEGER,                    -- negative: the signal
    error         TEXT,                       -- last lines of the traceback
    PRIMARY KEY (sequence_id, attempt)
) WITHOUT ROWID;
CREATE TABLE dispatcher_checkpoints (
    n             INTEGER PRIMARY KEY,        -- last command that it covers; the highest counts
    path          TEXT NOT NULL,              -- where it lies
    default_reply INTEGER NOT NULL,           -- last reply of the tuner that it covers
    assessor_reply INTEGER NOT NULL           -- last reply of the assessor that it covers
);
"""

_EXPORTS = """
CREATE TABLE exports (                        -- what trials that are classes exported at their end
    sequence_id   INTEGER NOT NULL,           -- of the trial
    format        TEXT NOT NULL,              -- one of its `export_formats`
    path          TEXT NOT NULL,              -- where it lies; relative: in the experiment's folder
    PRIMARY KEY (sequence_id, format)
) WITHOUT ROWID;
"""

_WORDS = """
ALTER TABLE trials RENAME COLUMN told TO next_unsent;
ALTER TABLE trials RENAME COLUMN revivals TO user_retries;
UPDATE trials SET verdict = replace(verdict, '"condemned by the assessor"', '"stopped early"')
    WHERE verdict LIKE '["condemned by the assessor"%';
"""

_CODE = """
ALTER TABLE trials ADD COLUMN code TEXT;      -- what its last attempt ran: a digest in code_versions
CREATE TABLE code_versions (
    digest        TEXT PRIMARY KEY,           -- of `loaded`
    loaded        TEXT NOT NULL               -- JSON: `files`, digests by path, and `packages`, versions by name
) WITHOUT ROWID;
CREATE TABLE starts (                         -- of managers: where the experiment ran, and the state of its code
    time          REAL NOT NULL,              -- when it started
    facts         TEXT NOT NULL,              -- JSON: host, system, python, pitchpipe, gpus, commit, branch, changed
    diff          TEXT NOT NULL               -- what was not committed of the files that git tracks, up to a size
);
"""

MIGRATIONS = (_FIRST, _ATTEMPTS, _EXPORTS, _WORDS, _CODE)
SCHEMA_VERSION = len(MIGRATIONS)
