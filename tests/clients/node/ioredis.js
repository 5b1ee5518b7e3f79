// ioredis with its defaults against a server at the port of the first argument.
import assert from "node:assert/strict";
import { Redis } from "ioredis";

const client = new Redis({ port: Number(process.argv[2]) });
assert.equal(await client.set("apple", "3"), "OK");
assert.equal(await client.incr("apple"), 4);
assert.equal(await client.get("apple"), "4");
assert.equal(await client.get("nosuch"), null);
assert.deepEqual(await client.getBuffer("apple"), Buffer.from("4"));

// A pipeline, which goes on behind an error.
const replies = await client.pipeline().set("a", "1").incr("a").call("nosuch").mget("a", "b").exec();
assert.deepEqual(replies[0], [null, "OK"]);
assert.deepEqual(replies[1], [null, 2]);
assert.match(replies[2][0].message, /unknown command/);
assert.deepEqual(replies[3], [null, ["2", null]]);

// Calls that nobody waits for between are one pipeline, too.
const sums = await Promise.all(Array.from({ length: 1000 }, () => client.incr("sum")));
assert.deepEqual(sums, Array.from({ length: 1000 }, (_, i) => i + 1));

// Transactions.
assert.deepEqual(await client.multi().set("b", "x").append("b", "y").get("b").exec(), [[null, "OK"], [null, 2], [null, "xy"]]);
await assert.rejects(client.multi().set("c", "1").call("get").exec(), /wrong number of arguments|EXECABORT/);
assert.equal(await client.exists("c"), 0);

// Errors.
await client.set("text", "abc");
await assert.rejects(client.incr("text"), /not an integer/);
await assert.rejects(client.set("text", "abc", "EX", 10), /does not expire/);

// All keys, by a stream.
const pipeline = client.pipeline();
for (let i = 0; i < 1000; i++) pipeline.set(`key:${i}`, `${i}`);
await pipeline.exec();
const keys = new Set();
for await (const page of client.scanStream({ match: "key:*", count: 50 })) for (const key of page) keys.add(key);
assert.equal(keys.size, 1000);

// Order.
assert.deepEqual(await client.zrange("index", "[key:10", "(key:101", "BYLEX"), ["key:10", "key:100"]);
assert.deepEqual(await client.call("PANDO.RANGE", "key:10", "key:100"), [["key:10", "10"], ["key:100", "100"]]);
await client.quit();
console.log("well");
