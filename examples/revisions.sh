# Sourced by the examples: makes a Git repository, and revisions in it.

begin() { # $1: the folder to make it in; $2: what it is called unless $1 is given
    folder=${1:-$2}
    if [ -e "$folder" ]; then
        echo "$folder is there already; name another folder: $0 FOLDER" >&2
        exit 2
    fi
    git init --quiet --initial-branch=main "$folder"
    cd "$folder"
}

revision() { # $1: its tag; $2: what it is about
    git add --all
    git -c user.name="webdyno's examples" -c user.email=examples@example.org \
        -c commit.gpgsign=false commit --quiet --message="$2"
    git tag "$1"
}

documented() { # one more sentence in the README, $1 if given, and nothing else
    echo "${1-All endpoints answer in JSON.}" >>README.md
    revision documentation "README: what the responses are"
}

ready() { # $1: what is slower in the last one
    cat <<END
$folder: revisions start, documentation and slower (${1-/search needs 300 µs more CPU time}).
    cd $folder
    webdyno init
    webdyno gate --base start --head documentation
    webdyno gate --base start --head slower
END
}
