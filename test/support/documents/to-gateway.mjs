// Loaded before a program of a document: connections to *.example.com reach the gateway of the test, and look public.
import net from 'node:net';

const port = Number(process.env.RIALTO_TEST_EXAMPLE_PORT);
const connect = net.Socket.prototype.connect;

net.Socket.prototype.connect = function (...args) {
  const list = Array.isArray(args[0]) ? args[0] : args;
  if (/\.example\.com$/.test(list[0]?.host)) {
    list[0] = { ...list[0], host: '127.0.0.1', port, lookup: undefined };
    Object.defineProperty(this, 'remoteAddress', { value: '93.184.215.14' });
  }
  return connect.apply(this, args);
};
