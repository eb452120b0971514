"""Layouts of C and C++, as CMake builds them."""

from pathlib import Path

import pytest

from systems.layouts.laid_out import Case, check, choices, laid_out
from webdyno.systems.layouts import find_app
from webdyno.systems.layouts.app import FoundApp
from webdyno.systems.layouts.remedies import remedies

CONFIGURE = "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF"
SERVER = (
    '#include "httplib.h"\nint main() { server.Get("/tasks", f); server.listen(h, port()); }\n'
    'int port() { return std::stoi(std::getenv("PORT")); }\n'
)


def built(target: str) -> str:
    return f'{CONFIGURE} && cmake --build build --target {target} --parallel "$(nproc)"'


CASES = {
    "of several programs the one that listens": Case(
        {
            "CMakeLists.txt": "project(tasks LANGUAGES CXX)\n# add_executable(old src/server.cpp)\n"
            "add_library(core src/task.cpp)\nadd_executable(tasks_cli src/main.cpp)\n"
            "add_executable(tasks_http src/server.cpp)\n"
            "add_executable(tasks_tests tests/server.cpp)\n",
            "src/main.cpp": "int main() {}\n",
            "src/task.cpp": "",
            "src/server.cpp": SERVER,
            "tests/server.cpp": SERVER,
        },
        "./build/tasks_http",
        built("tasks_http"),
        others={"doubts": ()},
    ),
    "the only program, whose library listens": Case(
        {
            "CMakeLists.txt": 'project("shop")\nadd_subdirectory(src)\nadd_subdirectory(../x)\n',
            "src/CMakeLists.txt": "file(GLOB FILES *.cc)\nadd_executable(${PROJECT_NAME} ${FILES})"
            '\nset_target_properties(${PROJECT_NAME} PROPERTIES OUTPUT_NAME "shopd")\n',
            "src/main.cc": "int main() { serve(); }\n",
            "src/net/http.cc": SERVER,
        },
        "./build/src/shopd",
        built("shop"),
    ),
    "where all programs go into one folder": Case(
        {
            "CMakeLists.txt": "project(a)\n"
            "set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)\n"
            "add_executable(${CMAKE_PROJECT_NAME} main.cpp)\n",
            "main.cpp": '#include <drogon/drogon.h>\nint main() { getenv("API_PORT"); }\n',
        },
        "API_PORT=$PORT ./build/bin/a",
        built("a"),
    ),
    "a fixed port": Case(
        {
            "CMakeLists.txt": "add_executable(a main.cpp)\n",
            "main.cpp": '#include "crow_all.h"\nint main() {\n  constexpr int kPort = 8080;\n'
            "  app.port(kPort).run();\n}\n",
        },
        "./build/a",
        built("a"),
        says=("it binds port 8080 in main.cpp:3",),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_layout_is_known(tmp_path: Path, name: str) -> None:
    check(tmp_path, CASES[name])


def test_of_several_servers_you_choose(tmp_path: Path) -> None:
    programs = "add_executable(shop a.cpp)\nadd_executable(admin b.cpp)\n"
    files = {"CMakeLists.txt": programs, "a.cpp": SERVER, "b.cpp": SERVER}
    assert choices(tmp_path, files).keys() == {"shop", "admin"}


@pytest.mark.parametrize("programs", ["add_library(x a.cpp)", "add_executable(x_test a.cpp)"])
def test_what_only_a_test_runs_is_no_application(tmp_path: Path, programs: str) -> None:
    assert find_app(laid_out(tmp_path, {"CMakeLists.txt": programs, "a.cpp": SERVER})) is None


def test_programs_that_serve_nothing_are_named(tmp_path: Path) -> None:
    files = {"CMakeLists.txt": "add_executable(x a.cpp)\nadd_executable(y b.cpp)\n", "a.cpp": ""}
    found = find_app(laid_out(tmp_path, files))
    assert found
    assert found.start is None
    assert "none of its programs (x, y) serves HTTP" in found.doubts[0]


LINES = {
    '#include "httplib.h"\nhttplib::Server server;\nserver.listen("0.0.0.0", 8080);\n': (
        'port 8080 in m.cpp:3: server.listen("127.0.0.1", std::stoi(std::getenv("PORT")));'
    ),
    "crow::SimpleApp app;\n#define PORT 18080\n": (
        'port 18080 in m.cpp:2: app.bindaddr("127.0.0.1").port(std::stoi(std::getenv("PORT")))'
    ),
    'drogon::app().addListener("0.0.0.0", 80);\n': (
        'port 80 in m.cpp:1: app().addListener("127.0.0.1", std::stoi(std::getenv("PORT")));'
    ),
}


@pytest.mark.parametrize("source", LINES)
def test_the_line_to_write_is_named(tmp_path: Path, source: str) -> None:
    (tmp_path / "m.cpp").write_text(source)
    said = "it listens on 0.0.0.0:8080 and not on 127.0.0.1:1"
    found = remedies(said, FoundApp("x", "./x"), tmp_path)
    assert any(LINES[source] in it for it in found)
