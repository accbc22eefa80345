// Distributes the requests to the ports of the arguments, one after the other, and prints its address.

import { startCutter } from "../sdk/js/cutter.mjs";

const ports = process.argv.slice(2).map(Number);
let count = 0;
const { origin } = await startCutter(() => ports[count++ % ports.length], []);
console.log(origin);
