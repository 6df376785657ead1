// openid-client signs a person in on a device without a browser. The first argument has the settings; the first line out
// has the codes, the second who signed in.
// [show]
import * as oauth from "openid-client";

// [/show]

const { issuer, clientId } = JSON.parse(process.argv[2]);
const tell = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
const show = (uri, code, picture) => tell({ uri, code, picture });
const options = { execute: [oauth.allowInsecureRequests] };
// [show]
// options: none; on your own machine, with http, { execute: [oauth.allowInsecureRequests] }
const config = await oauth.discovery(new URL(issuer), clientId, undefined, oauth.None(), options);
const codes = await oauth.initiateDeviceAuthorization(config, { scope: "openid profile" });
// On the screen: the address and the code, and if you can draw it, a QR code of the third.
show(codes.verification_uri, codes.user_code, codes.verification_uri_complete);
// Polls until the person has decided, and slows down if it is asked to.
const tokens = await oauth.pollDeviceAuthorizationGrant(config, codes);
const person = await oauth.fetchUserInfo(config, tokens.access_token, tokens.claims().sub);
// [/show]
tell({ sub: person.sub, renewed: Boolean((await oauth.refreshTokenGrant(config, tokens.refresh_token)).access_token) });
process.exit(0);
