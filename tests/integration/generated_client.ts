// Injects with openapi-fetch and the types that openapi-typescript makes; see test_generated_clients.py.
// AT, JSON in the environment, has the address, the key and the message.
import createClient from "openapi-fetch";
import type {components, paths} from "./schema.js";

declare const process: {env: Record<string, string | undefined>};
const at = JSON.parse(process.env.AT ?? "");

// A Message as clients write it has to satisfy the compiler: the schema can't know the data of
// events.
const written: components["schemas"]["Message"] =
    {URLToken: "0", userId: "u", sessionId: "s", data: {event: "x", order: {lines: [1, 2]}}};

const client = createClient<paths>({baseUrl: at.url, headers: {"X-API-Key": at.key}});
const {data, error} =
    await client.POST("/v2.0/endpoint/inject", {body: {...written, ...at.message}, parseAs: "text"});
if (error) throw new Error(JSON.stringify(error));
console.log(data);
