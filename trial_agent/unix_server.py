"""The local carrier: an agent behind a Unix socket that the manager made and passed on.

Only a process of the same user that knows the token is accepted; the last one that said `hello` is the
manager. The thread in which an event happens replies to a waiting poll. If the manager goes away, the
agent continues its trial and waits for the next manager; if it waits too long, it ends its trial and exits. An
idle agent exits within seconds: the spools have all that it could tell.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from functools import partial

from ..sdk import file_identity
from .core import Agent
from .messages import Hello, Message, MessageDecoder, MessageError, Reply, decode_request, encode_message
from .poll_sources import Wake

HELLO_TIMEOUT = 5.0
IDLE_ORPHAN_TIMEOUT = 5.0  # seconds; the next manager of an experiment that is over never comes
SEND_TIMEOUT = 5  # seconds; a manager that takes no bytes for so long counts as gone
MAX_STRANGERS = 16
_RECEIVE = 65536  # bytes; a larger buffer costs a system call for each message
_LEAVING = frozenset({signal.SIGTERM, signal.SIGINT})


class Connection:
    """One peer: a socket with its messages, and at most one waiting poll."""

    def __init__(self, peer: socket.socket) -> None:
        self.socket = peer
        self.descriptor = peer.fileno()
        self._identity = file_identity(self.descriptor)
        self.deadline = time.monotonic() + HELLO_TIMEOUT
        self._decoder = MessageDecoder()
        self._lock = threading.Lock()
        self._after: int | None = None  # the cursor of a waiting poll
        self._id: object = None  # the id of that poll, which its reply repeats
        peer.setblocking(True)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", SEND_TIMEOUT, 0))

    def receive(self) -> list[Message] | None:
        """Return the messages that have arrived; None if no more will come."""
        try:
            data = self.socket.recv(_RECEIVE)
            return self._decoder.feed(data) if data else None
        except (OSError, MessageError):
            return None

    def send(self, message: Reply) -> None:
        """Send a message; shut down a connection that cannot, which `receive` will notice."""
        with self._lock:
            self._send(message)

    def wait(self, agent: Agent, id: object, after: int) -> None:
        """Let a poll wait for events numbered above `after`."""
        with self._lock:
            self._after, self._id = after, id
        self.answer(agent)

    def answer(self, agent: Agent) -> None:
        """Reply to the waiting poll, if there is one and there are events."""
        with self._lock:
            if self._after is None:
                return
            batch = agent.next_events(self._after, 0.0)
            if batch["events"]:
                self._after = None
                self._send(with_id(batch, self._id))

    @property
    def is_whole(self) -> bool:
        """Whether the descriptor is still that of the socket: a function of a trial may close those of its process."""
        return file_identity(self.descriptor) == self._identity

    def close(self) -> None:
        """Close the socket."""
        with self._lock:
            self._after = None
            self.socket.close()

    def _send(self, message: Reply) -> None:
        if not self.is_whole:  # what has its number now is the user's
            self._after = None
            return
        try:
            self.socket.sendall(encode_message(message))
        except OSError:
            self._after = None
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)


class UnixServer:
    """Serves one agent on a listening socket; `serve` runs in a thread of its own until `close`.

    With `ends_orphans` false, the caller must end an agent that has been without a manager for too long.
    """

    def __init__(
        self, agent: Agent, listener: socket.socket, token: str, *, ends_orphans: bool = True
    ) -> None:
        self._agent = agent
        self._listener = listener
        self._token = token
        self._ends_orphans = ends_orphans
        self._wake = Wake()
        self._manager: Connection | None = None
        self._session: str | None = None
        self._replaced: list[str] = []  # the sessions before this one
        self._alone_since = time.monotonic()
        self._strangers: dict[int, Connection] = {}
        self._closing = False
        self._poll = select.poll()
        listener.setblocking(False)
        for descriptor in (listener.fileno(), self._wake.fileno()):
            self._poll.register(descriptor, select.POLLIN)
        agent.outbox.on_events = self._on_events

    def serve(self) -> None:
        """Serve managers until `close` is called, or until no manager has come for too long."""
        while not self._closing:
            ready = {descriptor for descriptor, _ in self._poll.poll(self._timeout())}
            self._check_descriptors()
            if self._wake.fileno() in ready and not _LEAVING.isdisjoint(self._wake.clear()):
                self._agent.shutdown()
            if self._manager is not None and self._manager.descriptor in ready:
                self._serve_manager(self._manager)
            for descriptor in ready & self._strangers.keys():
                self._serve_stranger(self._strangers[descriptor])
            if self._listener.fileno() in ready:
                self._accept()
            self._on_time()
        for connection in [*self._strangers.values(), self._manager]:
            if connection is not None:
                connection.close()
        self._listener.close()

    def close(self) -> None:
        """Make `serve` return."""
        self._closing = True
        self._wake.set()

    def abandon(self) -> None:
        """In a forked child, close its copies of the sockets: the manager must see that this process has ended."""
        for connection in [*self._strangers.values(), self._manager]:
            if connection is not None:
                connection.socket.close()  # its lock may be held by a thread that is not in the child
        self._listener.close()

    @property
    def wakeup_descriptor(self) -> int:
        """The descriptor for the numbers of signals: SIGTERM and SIGINT end the agent.

        Python runs a handler when the main thread gets to it; a thread that is about to wait for its next trial
        does not.
        """
        return self._wake.writer

    @property
    def has_manager(self) -> bool:
        """Whether a manager is connected."""
        return self._manager is not None

    def _check_descriptors(self) -> None:
        """End the trial and the agent if its function has closed their descriptors: other files have their numbers."""
        if not (self._wake.is_whole and (self._manager is None or self._manager.is_whole)):
            self._agent.give_up("the function closed descriptors of its agent: it must close only its own")

    def _on_events(self) -> None:
        manager = self._manager
        if manager is not None:
            manager.answer(self._agent)
        elif self._ends_orphans:
            self._wake.set()  # the agent may be idle now, which leaves it less time

    def _timeout(self) -> int | None:
        """Return the milliseconds until something is due; None if only messages can wake the server."""
        now = time.monotonic()
        due = [connection.deadline - now for connection in self._strangers.values()]
        if self._agent.outbox.is_holding:
            due.append(self._agent.outbox.held_for())
        if (orphaned := self._orphaned_at()) is not None:
            due.append(orphaned - now)
        return max(0, int(min(due) * 1000) + 1) if due else None

    def _orphaned_at(self) -> float | None:
        if self._manager is not None or not self._ends_orphans:
            return None
        patience, idle_since = self._agent.orphan_timeout, self._agent.idle_since
        if idle_since is None:
            return self._alone_since + patience
        return max(idle_since, self._alone_since) + min(patience, IDLE_ORPHAN_TIMEOUT)

    def _on_time(self) -> None:
        now = time.monotonic()
        for connection in [c for c in self._strangers.values() if c.deadline <= now]:
            self._drop_stranger(connection)
        if self._agent.outbox.release() and self._manager is not None:
            self._manager.answer(self._agent)
        orphaned = self._orphaned_at()
        if orphaned is not None and orphaned <= now:
            self._agent.shutdown()
            self._closing = True

    def _accept(self) -> None:
        try:
            peer, _ = self._listener.accept()
        except OSError:  # the peer has gone already
            return
        if len(self._strangers) >= MAX_STRANGERS or peer_uid(peer) not in (None, os.geteuid()):
            peer.close()
            return
        connection = Connection(peer)
        self._strangers[connection.descriptor] = connection
        self._poll.register(connection.descriptor, select.POLLIN)

    def _serve_stranger(self, connection: Connection) -> None:
        messages = connection.receive()
        if messages is None or (messages and not self._is_welcome(messages[0])):
            self._drop_stranger(connection)
        elif messages and messages[0].get("session") in self._replaced:
            connection.send(with_id({"replaced": True}, messages[0].get("id")))
            self._drop_stranger(connection)
        elif messages:
            del self._strangers[connection.descriptor]
            if self._manager is not None:
                self._drop_manager()
            self._begin_session(messages[0].get("session"))
            self._manager = connection
            self._handle(connection, messages)

    def _begin_session(self, session: object) -> None:
        """Refuse the managers of all earlier sessions from now on."""
        if self._session is not None and session != self._session:
            self._replaced.append(self._session)
        self._session = session if isinstance(session, str) else None

    def _is_welcome(self, message: Message) -> bool:
        try:
            hello = decode_request(message)
        except MessageError:
            return False
        if not isinstance(hello, Hello) or not isinstance(hello.token, str):
            return False
        return hmac.compare_digest(hello.token.encode(), self._token.encode())

    def _serve_manager(self, connection: Connection) -> None:
        messages = connection.receive()
        if messages is None:
            self._drop_manager()
        else:
            self._handle(connection, messages)

    def _handle(self, connection: Connection, messages: list[Message]) -> None:
        for message in messages:
            id = message.get("id")
            reply = self._agent.handle(message, partial(connection.wait, self._agent, id))
            if reply is not None:
                connection.send(with_id(reply, id))

    def _drop_manager(self) -> None:
        connection, self._manager = self._manager, None
        self._alone_since = time.monotonic()
        if connection is not None:
            self._poll.unregister(connection.descriptor)
            connection.close()

    def _drop_stranger(self, connection: Connection) -> None:
        del self._strangers[connection.descriptor]
        self._poll.unregister(connection.descriptor)
        connection.close()


def with_id(reply: Reply, id: object) -> Reply:
    """Return a reply with the id of its request, if that had one.

    >>> with_id({"size": 7}, 3), with_id({"size": 7}, None)
    ({'size': 7, 'id': 3}, {'size': 7})
    """
    return reply if id is None else {**reply, "id": id}


def peer_uid(peer: socket.socket) -> int | None:
    """Return the uid of the other end of a Unix socket; None where the system does not provide it.

    >>> left, right = socket.socketpair()
    >>> peer_uid(left) == os.geteuid()
    True
    >>> left.close(); right.close()
    """
    try:
        if sys.platform == "darwin":
            return struct.unpack_from("=II", peer.getsockopt(0, 1, 76))[1]  # LOCAL_PEERCRED: struct xucred
        return struct.unpack("=iII", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
    except (OSError, AttributeError):
        return None
