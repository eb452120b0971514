"""What a Compose file gives its containers of this machine, above all one of a revision."""

from pathlib import Path

import pytest

from webdyno.core.errors import UserError
from webdyno.systems.containers.compose import compose_services


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        ("privileged: true", "web.privileged"),
        ("cap_add: [NET_BIND_SERVICE, SYS_ADMIN]", "web.cap_add SYS_ADMIN"),
        ("security_opt: [seccomp=unconfined]", "web.security_opt seccomp=unconfined"),
        ("volumes: ['/:/host']", "web.volumes /"),
        ("volumes: ['./link:/host']", "web.volumes ./link"),
        ("volumes: [{type: bind, source: ../x, target: /x}]", r"web.volumes \.\./x"),
        ("volumes: ['link:/host/x', 'a/../../x:/y']", r"web.volumes a/\.\./\.\./x"),
        ("volumes: ['./d:/x:O,upperdir=/etc,workdir=/tmp/w']", "web.volumes O, web.*upperdir=/etc"),
        ("image: 'docker-archive:/root/a.tar'", "web.image docker-archive:/root/a.tar"),
        ("env_file: link/environment", "web.env_file link/environment"),
        ("env_file: own.env", r"web.env_file .*/own\.env\.example"),
        ("build: {context: ../..}", r"web.build \.\./\.\."),
        ("build: .", "web.build Dockerfile"),
        ("secrets: [s]", "web.secrets /etc/passwd"),
    ],
)
def test_a_revision_reaches_nothing_of_this_machine(folder: Path, keys: str, names: str) -> None:
    """Its author may be anybody who sent a pull request."""
    (folder / "link").symlink_to("/etc")
    (folder / "Dockerfile").symlink_to("/etc/shadow")
    (folder / "own.env.example").symlink_to("/etc/passwd")
    service = keys if keys.startswith("image") else f"image: x, {keys}"
    (folder / "compose.yaml").write_text(
        f"services: {{web: {{{service}}}}}\nsecrets: {{s: {{file: /etc/passwd}}}}\n"
    )
    with pytest.raises(UserError, match=rf"of a revision wants rights on this machine: {names}"):
        compose_services([folder / "compose.yaml"], "", "here", print, folder)


@pytest.mark.parametrize("way", ["include", "extends", "override", ".env", "several"])
def test_a_revision_s_files_are_read_and_no_others(folder: Path, way: str) -> None:
    outside = folder.parent / "outside.yaml"
    outside.write_text("services: {web: {image: x, environment: {A: TOKEN=t0ken}}}\n")
    files, text = [folder / "compose.yaml"], "services: {web: {image: x}}\n"
    match way:
        case "include":
            text = f"include: [{outside}]\n"
        case "extends":
            text = f"services: {{web: {{extends: {{file: {outside}, service: web}}}}}}\n"
        case "several":
            (folder / "b.yaml").symlink_to(outside)
            files.append(folder / "b.yaml")
        case name:
            link = folder / ("compose.override.yaml" if name == "override" else name)
            link.unlink(missing_ok=True)
            link.symlink_to(outside)
    files[0].write_text(text)
    compose_services(files, "", "here", print)
    with pytest.raises(UserError, match=r"of a revision leads out of it, to .*outside\.yaml"):
        compose_services(files, "", "here", print, folder)


def test_a_revision_gets_no_variables_of_who_calls(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "t0ken")
    (folder / ".env").write_text("OWN=${DEPLOY_TOKEN}its\n")
    (folder / "variables").write_text("MORE=${DEPLOY_TOKEN}\n")
    (folder / "compose.yaml").write_text(
        "services: {web: {build: {context: ., args: [DEPLOY_TOKEN]}, env_file: variables, "
        "environment: {A: '${DEPLOY_TOKEN}', B: '${OWN}', DEPLOY_TOKEN: }}}\n"
    )
    (mine,) = compose_services([folder / "compose.yaml"], "", "here", print)
    assert "t0ken" in str(mine)
    (its,) = compose_services([folder / "compose.yaml"], "", "here", print, folder)
    assert "t0ken" not in str(its)
    assert its.environment["B"] == "its"


def test_a_revision_s_container_exchanges_nothing_that_the_next_start_mounts(
    folder: Path,
) -> None:
    """A link in the place of b/c would lead there, wherever it points."""
    (folder / "data/b/c").mkdir(parents=True)
    (folder / "compose.yaml").write_text(
        "services:\n"
        "  web: {image: x, volumes: ['./data:/d', './data/b/c:/c'], depends_on: [own, reads]}\n"
        "  own: {image: x, volumes: ['./data:/d', '/d/b']}\n"
        "  reads: {image: x, volumes: ['./data:/d:ro']}\n"
    )
    its = compose_services([folder / "compose.yaml"], "web", "here", print, folder)
    volumes = {each.name: each.options for each in its}
    b, c = (f"--volume={folder}/data/{path}:/d/{path}" for path in ("b", "b/c"))
    assert volumes["web"][-2:] == (b, c)
    assert volumes["own"] == ("--volume=/d/b", f"--volume={folder}/data:/d"), "b is hidden there"
    assert volumes["reads"] == (f"--volume={folder}/data:/d:ro",)
    mine = compose_services([folder / "compose.yaml"], "web", "here", print)
    assert b not in {option for each in mine for option in each.options}


def test_a_revision_has_what_is_its_own(folder: Path) -> None:
    own = "{image: x, volumes: ['./data:/d', 'named:/n', '/anonymous'], cap_add: [CHOWN], "
    own += "security_opt: ['no-new-privileges:true'], env_file: .env}"
    (folder / "compose.yaml").write_text(f"services: {{web: {own}}}\n")
    assert compose_services([folder / "compose.yaml"], "", "here", print, folder)


@pytest.mark.parametrize(
    "volume", ['{type: tmpfs, target: "/:/host"}', '{type: volume, source: ":/", target: /host}']
)
def test_a_colon_hides_no_folder_of_this_machine(folder: Path, volume: str) -> None:
    (folder / "compose.yaml").write_text(f"services: {{web: {{image: x, volumes: [{volume}]}}}}\n")
    for within in (None, folder):
        with pytest.raises(UserError, match="have no colon"):
            compose_services([folder / "compose.yaml"], "", "here", print, within)


@pytest.mark.parametrize(
    ("key", "kinds"),
    [("volumes: ['./c:/d']", ""), ("secrets: [s]", "secrets: {s: {file: ./c/s}}\n")],
)
def test_a_folder_with_a_colon_is_mounted_nowhere(folder: Path, key: str, kinds: str) -> None:
    """Engines would take what stands before the colon, which is a link to any folder."""
    (inside := folder / "a:/b/c").mkdir(parents=True)
    (inside / "s").touch()
    (folder / "a").symlink_to("/")
    file = folder / "a:/b/compose.yaml"
    file.write_text(f"services: {{web: {{image: x, {key}}}}}\n{kinds}")
    for within in (None, folder):
        with pytest.raises(UserError, match=r"/a:/b/c.* has a colon, by which engines end a path"):
            compose_services([file], "", "here", print, within)
