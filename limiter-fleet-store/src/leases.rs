//! The calls of the script that divides shared budgets.

use limiter_fleet::{
    Access,
    lease::{ARBITER, Reply, ReplyItem},
};
use redis::{Script, Value, aio::MultiplexedConnection, cmd, pipe};

use super::{
    connect,
    query::{StoreError, add_idle, check_rights, query, refused},
};

/// A connection for the leases of a fleet.
pub struct Leases {
    connection: MultiplexedConnection,
    script: Script,
    /// The hash with all leases.
    key: String,
    /// The identity of the server's process.
    run: String,
}

impl Leases {
    /// Connects for the fleet with that name.
    pub async fn connect(access: &Access, fleet: &str) -> Result<Self, StoreError> {
        // All keys of a fleet are on one server of a cluster; a stream's commands find it.
        let news = format!("limiter:{{{fleet}}}:news");
        let mut connection = connect::connect(access, &news).await?;
        let script = Script::new(ARBITER);
        let key = format!("limiter:{{{fleet}}}:leases");
        check_rights(&mut connection, &rights(&script, fleet, &key)).await?;
        let run = run_id(&mut connection).await?;
        Ok(Self {
            connection,
            script,
            key,
            run,
        })
    }

    /// Calls the script. `arguments`: all but the first, the server's identity.
    pub async fn call(&mut self, arguments: &[Vec<u8>]) -> Result<Reply, StoreError> {
        let mut call = self.script.key(&self.key);
        call.arg(&self.run);
        for argument in arguments {
            call.arg(argument.as_slice());
        }
        let reply: Value = call
            .invoke_async(&mut self.connection)
            .await
            .map_err(|error| without_place(refused(error, &[])))?;
        Reply::read(item(reply)?).ok_or(StoreError::Response)
    }
}

/// Omits the line of the script from an error.
fn without_place(error: StoreError) -> StoreError {
    match error {
        StoreError::Failed(text) => {
            let end = text.find(" script: ").unwrap_or(text.len());
            StoreError::Failed(text[..end].to_owned())
        }
        other => other,
    }
}

/// Commands without effect that need the same rights as a call. The script's own commands need rights, too.
fn rights(script: &Script, fleet: &str, key: &str) -> redis::Pipeline {
    // No key, beside the others of the fleet.
    let none = format!("limiter:{{{fleet}}}:none");
    let mut all = pipe();
    add_idle(&mut all, &["HMGET", "HSET", "HDEL", "HSCAN"], key);
    all.cmd("HLEN").arg(key);
    all.cmd("DEL").arg(&none);
    all.cmd("TIME");
    all.cmd("EVALSHA").arg(script.get_hash()).arg(1).arg(none);
    all.cmd("SCRIPT").arg("LOAD").arg(ARBITER);
    all
}

/// Returns the identity of the server's process: random, of 40 hexadecimal digits.
async fn run_id(connection: &mut MultiplexedConnection) -> Result<String, StoreError> {
    let mut info = cmd("INFO");
    info.arg("server");
    let info: String = query(connection, &info).await?;
    let mut lines = info.lines();
    let run = lines.find_map(|line| line.strip_prefix("run_id:"));
    run.map(ToOwned::to_owned).ok_or(StoreError::Response)
}

fn item(value: Value) -> Result<ReplyItem, StoreError> {
    match value {
        Value::Int(number) => Ok(ReplyItem::Number(number)),
        Value::BulkString(bytes) => Ok(ReplyItem::Bytes(bytes)),
        Value::Array(items) => {
            let items = items.into_iter().map(item);
            Ok(ReplyItem::List(items.collect::<Result<_, _>>()?))
        }
        _ => Err(StoreError::Response),
    }
}
