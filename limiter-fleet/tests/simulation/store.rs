//! The store: the script itself, in a Lua of the tests.

use std::time::Instant;

use limiter_fleet::lease::{Reply, ReplyItem};
use mlua::{Function, Lua, Table, Value};

pub(crate) struct Store {
    lua: Lua,
    arbitrate: Function,
    /// How far its wall clock is from true time, in nanoseconds.
    pub(crate) offset: i64,
    pub(crate) spent_ns: u64,
}

impl Store {
    pub(crate) fn new(script: &str, offset: i64) -> Self {
        let lua = Lua::new();
        let load = |text: &str, name: &str| lua.load(text).set_name(name).into_function();
        let redis = load(include_str!("redis.lua"), "redis.lua").expect("Lua");
        redis.call::<()>(()).expect("the commands");
        let script = load(script, "arbiter.lua").expect("Lua");
        lua.globals().set("script", script).expect("a name");
        let arbitrate = lua.globals().get("arbitrate").expect("it is there");
        Self {
            lua,
            arbitrate,
            offset,
            spent_ns: 0,
        }
    }

    /// Runs the script at a true time.
    pub(crate) fn call(&mut self, now: u64, arguments: &[Vec<u8>]) -> Reply {
        let wall_us = (i64::try_from(now).expect("a time") + self.offset) / 1_000;
        self.lua
            .globals()
            .set("wall_us", wall_us)
            .expect("a number");
        let arguments = arguments.iter().map(|one| self.lua.create_string(one));
        let arguments: Vec<_> = arguments.collect::<Result<_, _>>().expect("memory");
        let begun = Instant::now();
        let reply: Value = self.arbitrate.call(arguments).expect("the script runs");
        self.spent_ns += u64::try_from(begun.elapsed().as_nanos()).expect("short");
        Reply::read(item(&reply)).expect("a reply")
    }

    /// The identity of the server's process.
    pub(crate) fn run(&self) -> String {
        let run: u64 = self.lua.globals().get("run").expect("a number");
        run.to_string()
    }

    /// Runs a function of the tests' Redis.
    pub(crate) fn order(&self, function: &str, argument: &str) {
        let function: Function = self.lua.globals().get(function).expect("it is there");
        function.call::<()>(argument).expect("it runs");
    }

    /// The number of the hash's fields.
    pub(crate) fn size(&self) -> usize {
        let size: Function = self.lua.globals().get("size").expect("it is there");
        size.call(()).expect("it runs")
    }
}

fn item(value: &Value) -> ReplyItem {
    match value {
        Value::Integer(number) => ReplyItem::Number(*number),
        // Redis cuts fractions off; the script must not return any.
        Value::Number(number) => {
            assert!(number.fract() == 0.0, "{number}");
            ReplyItem::Number(format!("{number:.0}").parse().expect("a number"))
        }
        Value::String(bytes) => ReplyItem::Bytes(bytes.as_bytes().to_vec()),
        Value::Table(table) => ReplyItem::List(items(table)),
        other => panic!("{other:?}"),
    }
}

fn items(table: &Table) -> Vec<ReplyItem> {
    let values = table.sequence_values::<Value>();
    values.map(|value| item(&value.expect("a value"))).collect()
}
