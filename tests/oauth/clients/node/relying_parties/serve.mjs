// Serves one example: `node serve.mjs NAME PORT`, with the client's settings as JSON on standard input.
import { text } from "node:stream/consumers";

const [name, port] = process.argv.slice(2);
const { site } = await import(`./${name}.mjs`);
const app = await site({ ...JSON.parse(await text(process.stdin)), here: `http://127.0.0.1:${port}` });
app.listen(Number(port), "127.0.0.1", () => console.log("listening"));
