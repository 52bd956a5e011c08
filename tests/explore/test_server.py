import asyncio
import http.client
import socket
import struct
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from neural_brane.explore.server import MOST_HEAD, POLICY, WORKERS, page_files


def ask(server, path, *, method="GET", host=None, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    headers = {"Host": host} if host else {}
    connection.request(method, path, body=body, headers=headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content


@pytest.fixture
def server(serve, small_view):
    return serve(small_view)


def test_the_page_and_its_files_are_served_with_a_strict_policy(server):
    for name in ("", *page_files()):
        answer, content = ask(server, f"/{server.token}/{name}")
        assert answer.status == 200, name
        assert content
        assert answer.headers["Content-Security-Policy"] == POLICY
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert "default-src 'none'" in POLICY
    assert "http" not in POLICY
    assert "*" not in POLICY


def test_it_listens_on_this_machine_alone(server):
    assert server.host == "127.0.0.1"
    assert server.port > 1023
    assert len(server.token) >= 32


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "localhost:1", "evil.example:{port}", "127.0.0.1.evil:{port}"]
)
def test_another_host_is_refused(server, host):
    answer, content = ask(server, f"/{server.token}/api/about", host=host.format(port=server.port))
    assert answer.status == 403
    assert b"nodes" not in content


def test_localhost_by_name_is_ours(server):
    answer, _ = ask(server, f"/{server.token}/api/about", host=f"localhost:{server.port}")
    assert answer.status == 200


@pytest.mark.parametrize(
    "path", ["/", "/api/about", "/wrong/api/about", "//api/about", "/{token}x/api/about", "/{short}/"]
)
def test_without_the_token_nothing_is_told(server, path):
    path = path.format(token=server.token, short=server.token[:-1])
    for method in ("GET", "POST"):
        answer, content = ask(server, path, method=method, body=b"" if method == "POST" else None)
        assert answer.status == 403
        assert server.token.encode() not in content


@pytest.mark.parametrize(
    "path",
    ["../server.py", "..%2fserver.py", "vendor/../../server.py", "/etc/passwd", "//etc/passwd", "vendor/",
     "__init__.py", "%2e%2e/%2e%2e/errors.py", "vendor/LICENSES.txt", "index.html%00", "api/", "api/links",
     "api/nonsense"],
)  # fmt: skip
def test_a_path_outside_the_page_is_refused(server, path):
    answer, _ = ask(server, f"/{server.token}/{path}")
    assert answer.status == 404


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("api/reasons", "missing"),
        ("api/reasons?row=x", "not a number"),
        ("api/reasons?row=99", "row 99"),
        ("api/alike?one=0&other=-1", "row -1"),
        ("api/points?run=7&layout=pca", "run 7"),
        ("api/points?run=0&layout=../x", "map"),
        ("api/column?name=golf", "'golf'"),
        ("api/holders?attribute=9", "attribute 9"),
    ],
)
def test_a_question_that_makes_no_sense_is_answered_with_what_is_wrong(server, path, words):
    answer, content = ask(server, f"/{server.token}/{path}")
    assert answer.status == 400
    assert words in content.decode()
    assert answer.headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize(("body", "status"), [(b"abc", 400), (b"\xff" * 4, 400), (b"", 200)])
def test_rows_that_make_no_sense_are_refused(server, body, status):
    answer, _ = ask(server, f"/{server.token}/api/count", method="POST", body=body)
    assert answer.status == status


def test_too_much_is_not_read(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.putrequest("POST", f"/{server.token}/api/count")
    connection.putheader("Content-Length", str(10**12))
    connection.endheaders()
    assert connection.getresponse().status == 400
    connection.close()


def test_a_bug_of_ours_is_told_in_one_line_and_the_server_goes_on(server, monkeypatch, capfd):
    monkeypatch.setattr(server.view, "names", lambda: 1 / 0)
    answer, content = ask(server, f"/{server.token}/api/names")
    assert answer.status == 500
    assert b"ZeroDivisionError" in content
    assert capfd.readouterr() == ("", content.decode() + "\n")
    assert ask(server, f"/{server.token}/api/about")[0].status == 200


def connect(server, sent):
    """Send bytes, with the names of the server filled in, and return the open connection."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    for name, value in (("TOKEN", server.token), ("HOST", f"127.0.0.1:{server.port}")):
        sent = sent.replace(name.encode(), value.encode())
    connection.sendall(sent)
    return connection


def receive(connection):
    """Return all bytes until the server closes the connection."""
    with connection:
        return b"".join(iter(lambda: connection.recv(65_536), b""))


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET x HTTP/1.1\r\nHost: HOST\r\n\r\n", 403),
        (b"GET x HTTP/1.1\r\n\r\n", 403),
        (b"GET //[x HTTP/1.1\r\nHost: HOST\r\n\r\n", 403),
        (b"GET /TOKEN HTTP/1.1\r\nHost: HOST\r\n\r\n", 404),
        (b"GET /TOKEN/\r\n\r\n", 400),
        (b"GET /TOKEN/ HTTP/1.1\r\nHost: HO", 400),
        (b"\x16\x03\x01\x02\0\x01\0\r\n\r\n", 400),
        (b"\r\n\r\n\r\n", 400),
        (b"GET /TOKEN/api/points?run=" + b"9" * 5000 + b"&layout=pca HTTP/1.0\r\nHost: HOST\r\n\r\n", 400),
        (b"GET /TOKEN/api/reasons?row=" + b"9" * 30 + b" HTTP/1.0\r\nHost: HOST\r\n\r\n", 400),
        (b"GET /TOKEN/api/holders?attribute=" + b"9" * 30 + b" HTTP/1.0\r\nHost: HOST\r\n\r\n", 400),
        (b"GET /TOKEN/ HTTP/1.1\r\nHost: HOST\r\n" + b"x: y\r\n" * 200 + b"\r\n", 431),
        (b"GET /TOKEN/" + b"x" * MOST_HEAD + b" HTTP/1.1\r\nHost: HOST\r\n\r\n", 431),
        (b"POST /TOKEN/api/count HTTP/1.1\r\nHost: HOST\r\n\r\n", 400),
        (b"POST /TOKEN/api/count HTTP/1.1\r\nHost: HOST\r\nContent-Length: 8\r\n\r\n\0\0\0\0", 400),
        (b"POST /TOKEN/api/count HTTP/1.1\r\nHost: HOST\r\nContent-Length: -4\r\n\r\n", 400),
        (b"POST /TOKEN/api/count HTTP/1.1\r\nHost: HOST\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", 400),
        (b"POST /TOKEN/api/count HTTP/1.1\r\nHost: HOST\r\nContent-Length: \xb2\r\n\r\n", 400),
    ],
)
def test_a_malformed_request_is_refused_and_nothing_is_printed(server, capfd, sent, status):
    connection = connect(server, sent)
    connection.shutdown(socket.SHUT_WR)
    answer = receive(connection)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert f"Content-Security-Policy: {POLICY}\r\n".encode() in answer
    assert ask(server, f"/{server.token}/api/about")[0].status == 200
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "sent", [b"", b"GET /TOKEN/api/names HTTP/1.1\r\nHost: HOST\r\n\r\n", b"POST /TOKEN/api/count HTTP/1.1\r\nHo"]
)
def test_a_browser_that_leaves_is_no_message(server, capfd, sent):
    connection = connect(server, sent)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close() then resets
    connection.close()
    assert ask(server, f"/{server.token}/api/names")[0].status == 200
    assert capfd.readouterr() == ("", "")


def test_a_connection_is_used_again_unless_the_browser_closes_it(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    for name in ("about", "nonsense", "names"):
        connection.request("GET", f"/{server.token}/api/{name}")
        answer = connection.getresponse()
        assert (answer.read() != b"", answer.will_close) == (True, False)
    connection.close()
    for last in (b"HTTP/1.0\r\n", b"HTTP/1.1\r\nConnection: close\r\n"):
        assert receive(connect(server, b"GET /TOKEN/ " + last + b"Host: HOST\r\n\r\n")).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"", b""),
        (b"GET /", b"HTTP/1.1 408 "),
        (b"POST /TOKEN/api/count HTTP/1.1\r\nHost: HOST\r\nContent-Length: 8\r\n\r\n\0\0\0\0", b"HTTP/1.1 408 "),
    ],
)
def test_a_browser_that_sends_too_slowly_is_disconnected(serve, small_view, capfd, sent, answer):
    received = receive(connect(serve(small_view, timeout=0.1), sent))
    assert received[: len(answer)] == answer
    assert bool(received) == bool(answer)
    assert capfd.readouterr() == ("", "")


def test_a_browser_that_does_not_read_is_disconnected(serve, small_view, monkeypatch):
    server = serve(small_view, timeout=0.1)
    monkeypatch.setitem(server.files, "large.js", bytes(50_000_000))
    connection = connect(server, b"GET /TOKEN/large.js HTTP/1.1\r\nHost: HOST\r\n\r\n")
    assert connection.recv(1)
    while len(asyncio.all_tasks(server._loop)) > 1:  # the other task listens
        pass
    assert len(receive(connection)) < 40_000_000


def test_open_connections_take_no_thread_and_questions_take_few(server, monkeypatch):
    before, seen = threading.active_count(), []
    names = server.view.names
    monkeypatch.setattr(server.view, "names", lambda: seen.append(threading.active_count()) or names())
    halves = [connect(server, b"GET /TOKEN/api/names HTTP/1.1\r\n") for _ in range(200)]
    assert ask(server, f"/{server.token}/api/names")[0].status == 200
    assert seen == [before + 1]
    with ThreadPoolExecutor(40) as pool:
        answers = list(pool.map(lambda half: ask(server, f"/{server.token}/api/names")[0].status, halves))
    assert answers == [200] * 200
    assert max(seen) <= before + WORKERS + 40
    for half in halves:
        half.close()


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE"])
def test_other_methods_are_not_known(server, method):
    assert ask(server, f"/{server.token}/", method=method)[0].status == 501


@pytest.mark.parametrize(
    ("path", "rows"),
    [
        ("names", None), ("points?run=0&layout=pca", None), ("regions?run=0&layout=pca", None),
        ("column?name=label", None), ("holders?attribute=2", None), ("alike?one=1&other=2", None),
        ("reasons?row=3", None), ("links", [1, 2, 5]), ("attributes", [5]), ("nearest?run=0", [3]), ("count", [1, 2]),
    ],
)  # fmt: skip
def test_answers_are_those_of_the_view(server, small_view, unpack, path, rows):
    body = None if rows is None else np.array(rows, "<u4").tobytes()
    answer, content = ask(server, f"/{server.token}/api/{path}", method="GET" if rows is None else "POST", body=body)
    assert answer.status == 200
    name, _, query = path.partition("?")
    asked = dict(part.split("=") for part in query.split("&") if part)
    expected = small_view.answer(name, asked, None if rows is None else np.array(rows))
    found = unpack(content)
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_array_equal(found[key], value.ravel() if isinstance(value, np.ndarray) else value)
