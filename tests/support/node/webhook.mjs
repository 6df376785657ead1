// What the library of Standard Webhooks says of a message, given as JSON: the event, or the name of the error.
import { readFileSync } from "node:fs";
import { Webhook } from "standardwebhooks";

const { secret, headers, body } = JSON.parse(readFileSync(0, "utf8"));
let said;
try {
  said = new Webhook(secret).verify(body, headers);
} catch (error) {
  said = error.constructor.name;
}
console.log(JSON.stringify(said));
