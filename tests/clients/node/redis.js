// redis, which node-redis is called on npm, with its defaults against a server at the port of the first argument.
import assert from "node:assert/strict";
import { createClient } from "redis";

const client = await createClient({ url: `redis://127.0.0.1:${process.argv[2]}` }).on("error", (err) => { throw err; }).connect();
assert.equal(await client.set("apple", "3"), "OK");
assert.equal(await client.incr("apple"), 4);
assert.equal(await client.get("apple"), "4");
assert.equal(await client.get("nosuch"), null);

// Calls that nobody waits for between are one pipeline.
const sums = await Promise.all(Array.from({ length: 1000 }, () => client.incr("sum")));
assert.deepEqual(sums, Array.from({ length: 1000 }, (_, i) => i + 1));

// Transactions.
assert.deepEqual(await client.multi().set("b", "x").append("b", "y").get("b").exec(), ["OK", 2, "xy"]);
await assert.rejects(client.multi().set("c", "1").addCommand(["GET"]).exec());
assert.equal(await client.exists("c"), 0);

// Errors.
await client.set("text", "abc");
await assert.rejects(client.incr("text"), /not an integer/);
await assert.rejects(client.set("text", "abc", { expiration: { type: "EX", value: 10 } }), /does not expire/);
await assert.rejects(client.sendCommand(["NOSUCH"]), /unknown command/);

// All keys, by an iterator.
await client.mSet(Array.from({ length: 1000 }, (_, i) => [`key:${i}`, `${i}`]));
const keys = new Set();
for await (const page of client.scanIterator({ MATCH: "key:*", COUNT: 50 })) for (const key of page) keys.add(key);
assert.equal(keys.size, 1000);

// Order.
assert.deepEqual(await client.zRange("index", "[key:10", "(key:101", { BY: "LEX" }), ["key:10", "key:100"]);
assert.deepEqual(await client.sendCommand(["PANDO.RANGE", "key:10", "key:100"]), [["key:10", "10"], ["key:100", "100"]]);
await client.close();
console.log("well");
