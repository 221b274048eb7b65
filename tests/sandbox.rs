//! Programs see what they declare, and nothing else. Needs a kernel with Landlock (Linux 5.13).

use serde_json::Value;

use crate::lab::{CommandOutput, Lab, text};

fn confined() -> bool {
    let lab = Lab::new(&command("true", ""));
    let how = sandbox(&lab.run_and_audit());
    let confined = how == "landlock, network closed";
    if !confined {
        println!("skipped: the sandbox here is {how}");
    }
    confined
}

fn command(before: &str, more: &str) -> String {
    format!(
        "[stage.t]\nkind = \"table\"\nrows = [{{ x = 1 }}]\n\
         [stage.c]\nkind = \"command\"\ninputs = {{ t = \"t\" }}\noutputs = [\"o\"]\n{more}\n\
         run = [\"sh\", \"-c\", '''{before} && cp $ABLATE_IN/t.parquet $ABLATE_OUT/o.parquet''']\n"
    )
}

fn sandbox(audit: &Value) -> String {
    let steps = audit["steps"].as_array().unwrap();
    text(&steps.last().unwrap()["sandbox"]).to_owned()
}

impl Lab {
    fn run_and_audit(&self) -> Value {
        let ran = self.run();
        assert_eq!(ran.printed.code, 0, "{:?}", ran.printed);
        let printed = self.ablate(&["audit", "c", "--json"]).good().stdout;
        serde_json::from_str(&printed).unwrap()
    }
}

#[test]
fn a_file_that_is_not_declared_cannot_be_read() {
    if !confined() {
        return;
    }
    let lab = Lab::new("");
    lab.write("secret.txt", "swordfish\n");
    let file = lab.path("secret.txt");
    lab.write(
        "pipeline.toml",
        &command(&format!("cat {}", file.display()), ""),
    );
    let printed = lab.ablate(&["run"]);
    assert_eq!(printed.code, 1);
    let help = format!(
        "a program sees its declared files, its inputs and system folders only, and writes to its \
         own folders: if it needs {}, name it in `files`, or its folder in `environment`, make it an \
         input, or run with --no-sandbox",
        file.display()
    );
    assert!(
        printed.stderr.contains("Permission denied"),
        "{}",
        printed.stderr
    );
    assert!(printed.stderr.contains(&help), "{}", printed.stderr);
    // A PATH that names the folder, or one inside it, does not open it.
    std::fs::create_dir(lab.path("bin")).unwrap();
    for more in [
        ".",
        lab.dir().to_str().unwrap(),
        "/",
        lab.path("bin").to_str().unwrap(),
    ] {
        let path = format!("{more}:{}", std::env::var("PATH").unwrap());
        let printed = lab.command(&["run"]).env("PATH", path).output().unwrap();
        let printed = String::from_utf8(printed.stderr).unwrap();
        assert!(
            printed.contains("Permission denied"),
            "PATH={more}: {printed}"
        );
    }
    // Declared, it can be read where it is then.
    lab.write(
        "pipeline.toml",
        &command("cat secret.txt", "files = [\"secret.txt\"]"),
    );
    assert_eq!(sandbox(&lab.run_and_audit()), "landlock, network closed");
    // And without a sandbox anywhere, which the provenance says.
    lab.write(
        "pipeline.toml",
        &command(&format!("cat {} >&2", file.display()), ""),
    );
    lab.run_with(&["--no-sandbox"]).ran(["c"]);
    let audit = lab.ablate(&["audit", "c", "--json"]).good().stdout;
    let audit: Value = serde_json::from_str(&audit).unwrap();
    assert_eq!(sandbox(&audit), "none (--no-sandbox)");
    let doubt = "c: its program could read undeclared files: sandbox none (--no-sandbox)";
    assert_eq!(audit["doubts"][0], doubt);
}

#[test]
fn nothing_is_written_outside_of_its_own_folders() {
    if !confined() {
        return;
    }
    let lab = Lab::new("");
    let file = lab.path("left-behind");
    lab.write(
        "pipeline.toml",
        &command(&format!("echo x > {}", file.display()), ""),
    );
    assert_eq!(lab.ablate(&["run"]).code, 1);
    assert!(!file.exists());
    // Nor may it change its inputs.
    lab.write(
        "pipeline.toml",
        &command("echo x > $ABLATE_IN/t.parquet", ""),
    );
    assert_eq!(lab.ablate(&["run"]).code, 1);
    let own =
        "echo a > here && echo b > $HOME/b && mktemp >/dev/null && echo 1/2 > $ABLATE_PROGRESS";
    lab.write("pipeline.toml", &command(own, ""));
    lab.run_and_audit();
}

/// A command line that reads a file, and what the program says of it.
fn reads(lab: &Lab, file: &str) -> String {
    let file = lab.path(file);
    command(&format!("cat {}", file.display()), "")
}

/// Neither where `ablate` is started, nor whose home it is, nor a PATH opens the pipeline's folder.
#[test]
fn the_pipelines_folder_is_closed_from_wherever_it_is_run() {
    if !confined() {
        return;
    }
    let lab = Lab::new("");
    lab.write("secret.txt", "swordfish\n");
    lab.write("bin/nothing", "");
    lab.write("pipeline.toml", &reads(&lab, "secret.txt"));
    let file = lab.path("pipeline.toml");
    let path = format!(
        "{}:{}:{}",
        lab.path("bin").display(),
        lab.dir().display(),
        std::env::var("PATH").unwrap()
    );
    for home in [None, Some("/"), lab.dir().to_str(), Some("/nonexistent")] {
        let mut run = lab.command(&["-f", file.to_str().unwrap(), "run"]);
        run.current_dir("/").env("PATH", &path).env_remove("HOME");
        run.envs(home.map(|home| ("HOME", home)));
        let printed = CommandOutput::of(run.output().unwrap());
        assert_eq!(printed.code, 1, "HOME={home:?}: {printed:?}");
        assert!(
            printed.stderr.contains("Permission denied"),
            "{}",
            printed.stderr
        );
    }
    // A PATH of the stage's own opens nothing either.
    let more = format!("env = {{ PATH = \"{path}\" }}");
    let cat = format!("cat {}", lab.path("secret.txt").display());
    lab.write("pipeline.toml", &command(&cat, &more));
    let printed = lab.ablate(&["run"]);
    assert!(
        printed.stderr.contains("Permission denied"),
        "{}",
        printed.stderr
    );
    assert!(!printed.stdout.contains("swordfish"));
}

fn script(lab: &Lab, name: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    lab.write(name, text);
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(lab.path(name), mode).unwrap();
}

/// A pipeline whose program is `run`, with more lines.
fn runs(run: &str, more: &str) -> String {
    format!(
        "[stage.t]\nkind = \"table\"\nrows = [{{ x = 1 }}]\n[stage.c]\nkind = \"command\"\n\
         inputs = {{ t = \"t\" }}\noutputs = [\"o\"]\nrun = {run}\n{more}\n"
    )
}

/// Found through PATH, a program of the pipeline's folder could change without anybody noticing.
#[test]
fn a_program_of_the_pipelines_folder_must_be_declared() {
    if !confined() {
        return;
    }
    let lab = Lab::new(&runs("[\"tool\"]", ""));
    let tool = "#!/bin/sh\ncp $ABLATE_IN/t.parquet $ABLATE_OUT/o.parquet\n";
    script(&lab, "bin/tool", tool);
    let path = format!(
        "{}:{}",
        lab.path("bin").display(),
        std::env::var("PATH").unwrap()
    );
    let printed = CommandOutput::of(lab.command(&["run"]).env("PATH", &path).output().unwrap());
    assert_eq!(printed.code, 1);
    assert!(
        printed.stderr.contains(
            "the program `tool` is bin/tool in the pipeline's folder, which is not declared"
        ),
        "{}",
        printed.stderr
    );
    let help = "write files = [\"bin/tool\"] and run it as \"./bin/tool\"";
    assert!(printed.stderr.contains(help), "{}", printed.stderr);
    lab.write(
        "pipeline.toml",
        &runs("[\"./bin/tool\"]", "files = [\"bin/tool\"]"),
    );
    lab.run().ran(["c"]);
}

/// Of a program that was installed somewhere only its file is open; its folder is when it is
/// declared, and then all that is in it counts.
#[test]
fn a_declared_environment_is_open_and_in_the_key() {
    if !confined() {
        return;
    }
    let lab = Lab::new("");
    let tool = "#!/bin/sh\ncat ${0%/*}/../share/data.txt && \
                cp $ABLATE_IN/t.parquet $ABLATE_OUT/o.parquet\n";
    // Two of them: one beside the pipeline, one somewhere else.
    let elsewhere = Lab::new("");
    for place in [&lab, &elsewhere] {
        script(place, "env/bin/tool", tool);
        place.write("env/share/data.txt", "one\n");
    }
    let outside = elsewhere.path("env");
    let path = format!(
        "{}:{}",
        outside.join("bin").display(),
        std::env::var("PATH").unwrap()
    );
    lab.write("pipeline.toml", &runs("[\"tool\"]", ""));
    let printed = CommandOutput::of(lab.command(&["run"]).env("PATH", &path).output().unwrap());
    assert_eq!(printed.code, 1, "{printed:?}");
    let help = format!("write environment = [\"{}\"]", outside.display());
    assert!(printed.stderr.contains(&help), "{}", printed.stderr);
    // By its folder, by the folder's name, or found in it as if it were activated.
    let absolute = format!("environment = [\"{}\"]", outside.display());
    for (run, more) in [
        ("[\"tool\"]", "environment = [\"env\"]"),
        ("[\"env/bin/tool\"]", "environment = [\"env\"]"),
        ("[\"tool\"]", absolute.as_str()),
    ] {
        lab.write("pipeline.toml", &runs(run, more));
        let ran = lab.run();
        assert_eq!(ran.printed.code, 0, "{run} {more}: {:?}", ran.printed);
        lab.run().ran([]);
    }
    lab.write(
        "pipeline.toml",
        &runs("[\"tool\"]", "environment = [\"env\"]"),
    );
    lab.run().ran([]);
    lab.write("env/share/data.txt", "two\n");
    let printed = lab.ablate(&["explain", "c"]).good().stdout;
    assert!(printed.contains("files env/ was "), "{printed}");
    lab.run().ran(["c"]);
    let log = lab.ablate(&["show", "c", "--log"]).good().stdout;
    assert!(log.contains("two"), "{log}");
    // It may be read, and not written.
    let write = "[\"sh\", \"-c\", \"echo x > $(dirname $(command -v tool))/x\"]";
    lab.write("pipeline.toml", &runs(write, "environment = [\"env\"]"));
    assert_eq!(lab.ablate(&["run"]).code, 1);
    assert!(!lab.path("env/bin/x").exists());
}

fn python() -> Option<&'static str> {
    let here = std::path::Path::new("/usr/bin/python3").is_file();
    if !here {
        println!("skipped: there is no /usr/bin/python3");
    }
    here.then_some("/usr/bin/python3")
}

/// The packages of a virtual environment are in the key, and what Python compiles is not.
#[test]
fn a_virtual_environment_counts_by_its_packages() {
    let (true, Some(python)) = (confined(), python()) else {
        return;
    };
    let lab = Lab::new("");
    let made = std::process::Command::new(python)
        .args(["-m", "venv", "--without-pip", ".venv"])
        .current_dir(lab.dir())
        .output()
        .unwrap();
    if !made.status.success() {
        println!("skipped: python3 cannot make virtual environments here");
        return;
    }
    let program = "[\"python\", \"-c\", '''\nimport os, shutil, mine\nprint(mine.x)\n\
                   shutil.copy(os.environ[\"ABLATE_IN\"] + \"/t.parquet\", os.environ[\"ABLATE_OUT\"] + \"/o.parquet\")''']";
    let lib = std::fs::read_dir(lab.path(".venv/lib")).unwrap();
    let lib = lib.flatten().next().unwrap().path().join("site-packages");
    let module = lib.join("mine.py");
    std::fs::write(&module, "x = 'first'\n").unwrap();
    // Activated, and not declared.
    lab.write("pipeline.toml", &runs(program, ""));
    let path = format!(
        "{}:{}",
        lab.path(".venv/bin").display(),
        std::env::var("PATH").unwrap()
    );
    let printed = CommandOutput::of(lab.command(&["run"]).env("PATH", &path).output().unwrap());
    assert!(
        printed.stderr.contains("write environment = [\".venv\"]"),
        "{}",
        printed.stderr
    );
    lab.write("pipeline.toml", &runs(program, "environment = [\".venv\"]"));
    let ran = lab.run();
    assert_eq!(ran.printed.code, 0, "{:?}", ran.printed);
    // Used outside, it is compiled: nothing that a program could see has changed.
    let used = std::process::Command::new(lab.path(".venv/bin/python"))
        .args(["-c", "import mine"])
        .env_remove("PYTHONDONTWRITEBYTECODE")
        .output()
        .unwrap();
    assert!(used.status.success() && lib.join("__pycache__").is_dir());
    lab.run().ran([]);
    // As long and as old as before: Python would take its bytecode for up to date.
    let before = std::fs::metadata(&module).unwrap().modified().unwrap();
    std::fs::write(&module, "x = 'other'\n").unwrap();
    let file = std::fs::File::options().write(true).open(&module).unwrap();
    file.set_modified(before).unwrap();
    lab.run().ran(["c"]);
    let log = lab.ablate(&["show", "c", "--log"]).good().stdout;
    assert!(log.contains("other"), "{log}");
}

#[test]
fn whether_a_file_may_be_run_is_in_the_key() {
    use std::os::unix::fs::PermissionsExt;
    let test = "if [ -x note ]; then echo runs; else echo reads; fi";
    let lab = Lab::new(&command(test, "files = [\"note\"]"));
    lab.write("note", "");
    lab.run().ran(["c", "t"]);
    let mode = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(lab.path("note"), mode).unwrap();
    };
    mode(0o755);
    let printed = lab.ablate(&["explain", "c"]).good().stdout;
    assert!(
        printed.contains("files note is new: executable"),
        "{printed}"
    );
    lab.run().ran(["c"]);
    let log = lab.ablate(&["show", "c", "--log"]).good().stdout;
    assert!(log.contains("runs"), "{log}");
    // Who else may read it makes no difference to a copy.
    mode(0o700);
    lab.run().ran([]);
    mode(0o644);
    lab.run().ran([]);
}

/// A limit decides whether there is a result, and never which.
#[test]
fn limits_are_not_in_the_key() {
    let lab = Lab::new(&command("true", "timeout = 60"));
    lab.run().ran(["c", "t"]);
    lab.edit(
        "timeout = 60",
        "timeout = 61\nmemory = 1.5\nprocesses = 512",
    );
    lab.run().ran([]);
    lab.edit("processes = 512", "processes = 0");
    let printed = lab.ablate(&["plan"]);
    assert_eq!(printed.code, 2);
    assert!(printed.stderr.contains("`processes` is 0"));
}

#[test]
fn the_network_is_closed_unless_it_is_asked_for() {
    let (true, Some(python)) = (confined(), python()) else {
        return;
    };
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_read_timeout(Some(std::time::Duration::from_millis(300)))
        .unwrap();
    let (tcp_port, udp_port) = (
        tcp.local_addr().unwrap().port(),
        udp.local_addr().unwrap().port(),
    );
    let connect = format!(
        "{python} -c 'import socket; socket.create_connection((\"127.0.0.1\", {tcp_port}), 5)'"
    );
    let send = format!(
        "{python} -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); \
         s.sendto(b\"x\", (\"127.0.0.1\", {udp_port}))'"
    );
    let lab = Lab::new(&command(&connect, ""));
    let printed = lab.ablate(&["run"]);
    assert_eq!(printed.code, 1, "{printed:?}");
    assert!(
        printed
            .stderr
            .contains("or write network = true, which audits name"),
        "{}",
        printed.stderr
    );
    // Nobody hears what is sent, whatever the program believes.
    lab.write(
        "pipeline.toml",
        &command(&format!("{{ {send}; true; }}"), ""),
    );
    lab.run_and_audit();
    assert!(udp.recv(&mut [0; 8]).is_err(), "a datagram came out");
    // It may talk to itself.
    let itself = format!(
        "{python} -c 'import socket; l = socket.create_server((\"127.0.0.1\", 0)); \
         socket.create_connection(l.getsockname())'"
    );
    lab.write("pipeline.toml", &command(&itself, ""));
    lab.run_and_audit();
    // Sockets by name, without a file.
    let name = format!("ablate-test-{}", std::process::id());
    use std::os::linux::net::SocketAddrExt;
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
    let by_name = format!(
        "{python} -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"\\0{name}\")'"
    );
    lab.write("pipeline.toml", &command(&by_name, ""));
    assert_eq!(lab.ablate(&["run"]).code, 1);
    // Asked for, it is open, and audits say so.
    lab.write(
        "pipeline.toml",
        &command(&format!("{connect} && {send}"), "network = true"),
    );
    let audit = lab.run_and_audit();
    assert!(udp.recv(&mut [0; 8]).is_ok());
    assert_eq!(sandbox(&audit), "landlock, network open (network = true)");
    let doubt = "c: its program was not isolated from other programs: \
                 sandbox landlock, network open (network = true)";
    assert_eq!(audit["doubts"][0], doubt);
}

#[test]
fn a_program_cannot_end_what_started_it() {
    if !confined() {
        return;
    }
    // Neither its parent nor all that its user may signal.
    let kill = "{ kill -9 $PPID; kill -TERM -1; true; }";
    let lab = Lab::new(&command(&format!("trap '' TERM; {kill}"), ""));
    lab.run_and_audit();
}

/// What the shell left open for `ablate` is not the program's to read.
#[test]
fn descriptors_are_not_inherited() {
    let lab = Lab::new(&command("{ cat <&9 || echo closed; }", ""));
    lab.write("secret.txt", "swordfish\n");
    let ablate = env!("CARGO_BIN_EXE_ablate");
    let run = format!("exec 9<secret.txt; exec {ablate} run");
    let ran = std::process::Command::new("sh")
        .args(["-c", &run])
        .current_dir(lab.dir())
        .output()
        .unwrap();
    let ran = CommandOutput::of(ran);
    assert_eq!(ran.code, 0, "{ran:?}");
    let log = lab.ablate(&["show", "c", "--log"]).good().stdout;
    assert!(
        log.contains("closed") && !log.contains("swordfish"),
        "{log}"
    );
}

#[test]
fn memory_has_a_limit_that_is_named() {
    let Some(python) = python() else {
        return;
    };
    let big = format!("{python} -c 'x = bytearray(1_000_000_000)'");
    let lab = Lab::new(&command(&big, "memory = 0.5"));
    let printed = lab.ablate(&["run"]);
    assert_eq!(printed.code, 1, "{printed:?}");
    let help = "its limit is 0.5 GB; raise `memory`";
    assert!(printed.stderr.contains(help), "{}", printed.stderr);
    lab.edit("memory = 0.5", "memory = 4");
    lab.run().ran(["c"]);
}

/// Counted for the program alone, not for the user: by a control group, or in a namespace of its own
/// for whoever is not root.
#[test]
fn processes_have_a_limit() {
    let counted = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"]
        .iter()
        .any(|root| {
            let group = std::path::Path::new(root).join(format!("test-{}", std::process::id()));
            let made = std::fs::create_dir(&group).is_ok() && group.join("pids.max").exists();
            let _ = std::fs::remove_dir(&group);
            made
        });
    if !counted {
        println!("skipped: no control group can be made here");
        return;
    }
    let many = "for n in 1 2 3 4 5 6 7 8 9 10; do sleep 5 & done";
    let lab = Lab::new(&command(&format!("{{ {many}; }}"), "processes = 6"));
    let printed = lab.ablate(&["run"]);
    assert_eq!(printed.code, 1, "{printed:?}");
    let help = "its limit is 6 processes and threads; raise `processes`";
    assert!(printed.stderr.contains(help), "{}", printed.stderr);
    lab.edit("processes = 6", "processes = 60");
    lab.run().ran(["c"]);
}

/// The folders of a run that was killed are gone when the next one ends.
#[test]
fn a_killed_run_leaves_nothing_behind() {
    let lab = Lab::new(&command("exec sleep 60", ""));
    let elsewhere = Lab::new("");
    let temporary = elsewhere.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let mut run = lab.command(&["run"]);
    let mut run = run.env("TMPDIR", &temporary).spawn().unwrap();
    let started = || {
        let folders = std::fs::read_dir(lab.path(".ablate/tmp"));
        let mut folders = folders.into_iter().flatten().flatten();
        folders.any(|folder| {
            let inside = std::fs::read_dir(folder.path()).into_iter().flatten();
            let mut inside = inside.flatten().map(|entry| entry.path());
            inside.any(|path| path.join("work").is_dir())
        })
    };
    while !started() {
        assert!(run.try_wait().unwrap().is_none(), "it ended before");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(started(), "killed, it could not tidy up");
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
    // Nor does its program live on: the kernel ends it.
    let marker = lab.path(".ablate/tmp").canonicalize().unwrap();
    let lives = || {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let mut variables = all.filter_map(|it| std::fs::read(it.path().join("environ")).ok());
        variables.any(|found| {
            let found = String::from_utf8_lossy(&found).into_owned();
            found.contains(&format!("ABLATE_OUT={}", marker.display()))
        })
    };
    for _ in 0..500 {
        if !lives() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(!lives(), "its program lives on");
    lab.edit("exec sleep 60", "true");
    let ran = lab.run();
    assert_eq!(ran.printed.code, 0, "{:?}", ran.printed);
    assert_eq!(lab.files(".ablate/tmp"), Vec::<std::path::PathBuf>::new());
    lab.ablate(&["verify"]).good();
    assert_eq!(lab.files(".ablate/tmp"), Vec::<std::path::PathBuf>::new());
}

/// Opened as a lock would be, a pipe waits for somebody at its other end.
#[test]
fn a_pipe_in_the_place_of_a_lock_stops_nobody() {
    let lab = Lab::new(&command("true", ""));
    lab.run();
    let strange = lab.path(".ablate/tmp/strange");
    std::fs::create_dir(&strange).unwrap();
    let lock = strange.join("lock");
    let made = std::process::Command::new("mkfifo").arg(&lock).status();
    assert!(made.unwrap().success());
    lab.edit("true", "true && true");
    lab.run().ran(["c"]);
    let printed = lab.ablate(&["gc"]).good();
    let expected = ".ablate/tmp/strange/lock: it is a named pipe, not a file: remove it";
    assert!(printed.stderr.contains(expected), "{}", printed.stderr);
}

/// Interpreters lie in many places; the one that is found must work.
#[test]
fn python_runs_if_there_is_one() {
    if !confined() {
        return;
    }
    let here = std::process::Command::new("python3")
        .arg("--version")
        .output();
    if !here.is_ok_and(|answer| answer.status.success()) {
        println!("skipped: there is no python3");
        return;
    }
    let lab = Lab::new(&command(
        "python3 -c 'import json, random, ssl; print(json.dumps(1))'",
        "",
    ));
    lab.run_and_audit();
}
