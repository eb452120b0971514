"""Variables without which a program, or its build, ends are named before that happens."""

import pytest

from webdyno.systems.layouts.wanted import wanted_in

INSISTED_ON = {
    "Ruby": (".rb", 'set :url, ENV.fetch "APP_URL"\nENV.fetch("A_KEY")\n', {"APP_URL", "A_KEY"}),
    "Ruby with another value": (
        ".rb",
        (
            'port ENV.fetch "RACK_PORT", 4567\nENV.fetch("A", 5)\nENV.fetch("B") { 1 }\n'
            '# ENV.fetch("C_C")\n'
        ),
        set[str](),
    ),
    "Kotlin": (
        ".kt",
        (
            'val a = getEnv("DB_HOST")!!\nval b = System.getenv("B_B") ?: error("none")\n'
            'val c = System.getenv("C_C") ?: "c"\n'
        ),
        {"DB_HOST", "B_B"},
    ),
    "Go that ends without": (
        ".go",
        (
            'key := os.Getenv("A_KEY")\nif key == "" {\n\tlog.Fatal("A_KEY is not set")\n}\n'
            'b := os.Getenv("B")\nif b == "" {\n\tb = "usual"\n}\n'
            'if c := os.Getenv("C_C"); c == "" {\n\tlog.Print("none")\n\tos.Exit(1)\n}\n'
        ),
        {"A_KEY", "C_C"},
    ),
    "Go by a function of its own": (".go", 'url := mustGetEnv("API_URL")\n', {"API_URL"}),
    "Go by tags": (
        ".go",
        (
            'A string `env:"A_URL,required"`\nB string `env:"B" env-required:"true"`\n'
            'C string `env:"C,required" envDefault:"c"`\nD string `env:"D"`\n'
        ),
        {"A_URL", "B"},
    ),
    "what SvelteKit's build writes into modules": (
        ".svelte",
        (
            'import { PUBLIC_SERVER } from "$env/static/public";\n'
            "import { env } from '$env/dynamic/public';\n"
        ),
        {"PUBLIC_SERVER"},
    ),
    "Node that ends without": (
        ".ts",
        (
            "if (!process.env.API_KEY) {\n  console.error('no key');\n  process.exit(1);\n}\n"
            "if (!process.env.NICE) {\n  console.warn('none');\n}\nconst u = requireEnv('A_URL');\n"
            "requireRole('ADMIN');\n"
        ),
        {"API_KEY", "A_URL"},
    ),
    "Nest's service": (".ts", 'config.getOrThrow<string>("A_URL"); config.get("B")\n', {"A_URL"}),
    "Elixir": (
        ".exs",
        (
            'import Config\nSystem.fetch_env!("A_A")\nb = System.get_env("B_B") ||\n  raise "b"\n'
            '# System.fetch_env!("C_C")\nd = System.get_env("D_D") || "d"\n'
            'if e do\n  raise """\n  environment variable E_E is missing.\n  """\nend\n'
        ),
        {"A_A", "B_B", "E_E"},
    ),
    "a list of what is required": (
        ".ts",
        (
            "const requiredEnvVars: string[] = ['A_URL', \"B_KEY\",\n];\n"
            "const requiredRoles = ['ADMIN_ROLE'];\n"
            "requiredEnvVars.filter((name) => !process.env[name])\n"
        ),
        {"A_URL", "B_KEY"},
    ),
    "a list of Go's": (
        ".go",
        'required := []string{"A_URL", "B_KEY"}\nfor _, key := range required { os.Getenv(key) }\n',
        {"A_URL", "B_KEY"},
    ),
    "a list of something else": (".ts", "const required = ['A_A', 'B_B'];\n", set[str]()),
    "Python as it is imported": (
        ".py",
        (
            'KEY = os.getenv("A_KEY")\nif not KEY:\n    raise ValueError\n'
            'def f():\n    b = os.getenv("B_B")\n    if not b:\n        raise ValueError\n'
        ),
        {"A_KEY"},
    ),
}


@pytest.mark.parametrize("name", INSISTED_ON)
def test_what_sources_insist_on_is_wanted(name: str) -> None:
    ending, text, wanted = INSISTED_ON[name]
    assert set(wanted_in(text, ending)) == wanted
