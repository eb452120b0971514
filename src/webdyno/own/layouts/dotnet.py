"""ASP.NET Core."""

import re
from pathlib import Path

from webdyno.own.layouts.app import FoundApp
from webdyno.own.layouts.files import MOST_MEMBERS, read_text

WEB = re.compile(r'Sdk="Microsoft\.NET\.Sdk\.Web"')
ASSEMBLY = re.compile(r"<AssemblyName>([\w.-]+)</AssemblyName>")


def find_in(folder: Path) -> FoundApp | None:
    """Publish the project that serves, and start what that makes."""
    depths = ("*.csproj", "*/*.csproj", "*/*/*.csproj")
    projects = [path for depth in depths for path in sorted(folder.glob(depth))][:MOST_MEMBERS]
    web = {project: text for project in projects if WEB.search(text := read_text(project) or "")}
    tests = {project for project in web if "test" in project.stem.lower()}
    apps = {
        project.stem: _app(folder, project, text)
        for project, text in web.items()
        if project not in tests
    }
    if len(apps) == 1:
        return next(iter(apps.values()))
    several = "there are several projects with Microsoft.NET.Sdk.Web"
    return FoundApp(next(iter(apps)), several=several, choices=apps) if apps else None


def _app(folder: Path, project: Path, text: str) -> FoundApp:
    named = ASSEMBLY.search(text)
    name = named[1] if named else project.stem
    file = project.relative_to(folder).as_posix()
    return FoundApp(
        file,
        f"ASPNETCORE_URLS=http://127.0.0.1:$PORT dotnet out/{name}.dll",
        f"dotnet publish {file} --configuration Release --output out --nologo",
        environment={"ASPNETCORE_ENVIRONMENT": "Production", "DOTNET_CLI_TELEMETRY_OPTOUT": "1"},
        notes=("what `dotnet publish` makes is started, not `dotnet run`",),
    )
