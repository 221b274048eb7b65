//! Makes executions for tests of what is recorded.

use std::time::Duration;

use crate::{
    Digest, Finished, InputUsed, NewRun, RunId, StageKey, Staged, Status, Store, Use, Value,
};

pub fn key(kind: &str, n: i64) -> StageKey {
    StageKey {
        record: StageKey::RECORD.into(),
        kind: kind.into(),
        code: crate::code_digest(&code(kind)),
        params: [("n".to_owned(), Value::Int(n))].into(),
        seed: Some(u64::MAX),
        files: Default::default(),
        executable: Default::default(),
        installed: Default::default(),
        inputs: Default::default(),
    }
}

/// The sources behind a kind.
pub fn code(kind: &str) -> crate::CodeFiles {
    [("mod.rs".to_owned(), Digest::of(kind.as_bytes()))].into()
}

pub fn begin(store: &Store) -> RunId {
    let run = NewRun {
        pipeline: "demo".into(),
        file: "pipeline.toml".into(),
        settings: "{}".into(),
        ..NewRun::default()
    };
    store.begin_run(&run).unwrap()
}

pub fn finished(run: RunId, instance: &str, key: StageKey, staged: Staged) -> Finished {
    Finished {
        run,
        instance: instance.into(),
        key_digest: key.digest(),
        code: std::sync::Arc::new(code(&key.kind)),
        key,
        started: 1_000_000,
        wall: Duration::from_millis(5),
        cpu: Some(Duration::from_millis(4)),
        peak_memory: Some(1 << 20),
        work: Default::default(),
        outcome: Ok(vec![("out".into(), staged)]),
        log: "printed this\n".into(),
        inputs: Vec::new(),
        environment: None,
        facts: Default::default(),
        lease: None,
    }
}

pub fn reads(port: &str, producer: &str, digest: Digest) -> InputUsed {
    InputUsed {
        port: port.into(),
        ordinal: 0,
        axes: None,
        producer: producer.into(),
        digest,
    }
}

pub fn used(run: RunId, instance: &str, status: Status, key: &StageKey) -> Use {
    Use {
        run,
        instance: instance.into(),
        status,
        key: Some(key.digest()),
        wall: Duration::from_micros(7),
    }
}
