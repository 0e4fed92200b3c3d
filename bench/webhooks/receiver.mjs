// Answers every post with 200 and counts the posts; GET returns the count.
import { createServer } from 'node:http';

let count = 0;
const server = createServer((request, response) => {
  if (request.method === 'GET') return response.end(String(count));
  request.resume().on('end', () => {
    count++;
    response.end('ok');
  });
});
// The processes that post and count pause for longer than five seconds, the default after which Node closes an idle
// connection.
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => console.log(`ready http://127.0.0.1:${server.address().port}`));
